"""The operations that test cases consist of, named as in scheduler_perf."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from berth.tools.bench.api_server import at_once
from berth.tools.bench.pace import Act, paced
from berth.tools.bench.scheduler_perf.run import NODES, Run
from berth.tools.bench.scheduler_perf.storage import CSI_NODES, Volume, csi_node
from berth.tools.bench.scheduler_perf.templates import (
    Object,
    Template,
    default_node,
    default_pod,
)

INITIAL: Final = "initial"
MEASURED: Final = "measured"
CHURN: Final = "churn"
"""Namespaces of pods, where none is named; scheduler_perf has one for each operation."""


class Operation(Protocol):
    """A step of a test case."""

    async def run(self, run: Run) -> None: ...


@dataclass(frozen=True, slots=True)
class CreateNodes:
    count: int
    template: Template = default_node
    csi_limit: int = 0
    """How many EBS volumes fit on each node, as its CSINode tells; 0: it has none."""
    is_migrated: bool = False
    """Whether the CSI driver is to be asked about in-tree volumes, too."""

    async def run(self, run: Run) -> None:
        nodes = (self.template(n) for n in range(self.count))
        await at_once(partial(self._create, node, run) for node in nodes)

    async def _create(self, node: Object, run: Run) -> None:
        await run.create(NODES, node)
        if self.csi_limit:
            limits = csi_node(
                node["metadata"]["name"], self.csi_limit, is_migrated=self.is_migrated
            )
            await run.create(CSI_NODES, limits)


@dataclass(frozen=True, slots=True)
class CreateNamespaces:
    names: Sequence[str]
    labels: Mapping[str, str]

    async def run(self, run: Run) -> None:
        await at_once(partial(run.create_namespace, name, self.labels) for name in self.names)


@dataclass(frozen=True, slots=True)
class CreateAny:
    """Create objects of any kind; *path* is that of their collection, see Run.collection."""

    path: str
    template: Template
    count: int = 1
    namespace: str = ""

    async def run(self, run: Run) -> None:
        path = await run.collection(self.path, self.namespace)
        await at_once(partial(run.create, path, self.template(n)) for n in range(self.count))


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Create pods, in each namespace so many, and wait until they are bound unless told not to."""

    count: int
    template: Template = default_pod
    namespaces: Sequence[str] = (INITIAL,)
    volume: Volume | None = None
    """Each pod gets one of its own."""
    is_measured: bool = False
    skip_wait: bool = False

    async def run(self, run: Run) -> None:
        for namespace in self.namespaces:
            await run.create_namespace(namespace)
        if self.is_measured:
            await run.begin_measuring()
        counts = {namespace: len(run.pods[namespace]) for namespace in self.namespaces}
        await at_once(self._creations(run))
        created = [
            pod for namespace, count in counts.items() for pod in run.pods[namespace][count:]
        ]
        if self.is_measured:
            run.measured += created
        if self.skip_wait:
            run.waiting += created
            return
        await run.until_bound(created)

    def _creations(self, run: Run) -> Iterator[Act]:
        for namespace, n in itertools.product(self.namespaces, range(self.count)):
            yield partial(run.create_pod, namespace, self.template(n), self.volume)


@dataclass(frozen=True, slots=True)
class CreateSteadily:
    """Create measured pods, wait until they are bound, delete them, and do that again.

    scheduler_perf goes on for some time, this for so many rounds.
    """

    count: int
    rounds: int
    template: Template
    namespace: str = MEASURED

    async def run(self, run: Run) -> None:
        for _ in range(self.rounds):
            await measured_pods(self.count, self.template, namespace=self.namespace).run(run)
            bound = run.pods[self.namespace][-self.count :]
            await at_once(partial(run.delete_pod, pod) for pod in bound)


def measured_pods(
    count: int, template: Template = default_pod, *, namespace: str = MEASURED
) -> CreatePods:
    """Return the operation that most test cases end with."""
    return CreatePods(count, template, (namespace,), is_measured=True)


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Delete the first *count* pods of a namespace in the background."""

    namespace: str
    count: int
    per_second: int

    async def run(self, run: Run) -> None:
        pods = run.pods[self.namespace][: self.count]
        deletions = (partial(run.delete_pod, pod) for pod in pods)
        await run.in_background(_at_rate(deletions, self.per_second, run))


@dataclass(frozen=True, slots=True)
class UpdateAny:
    """Patch objects, so many a second; *path* and *patch* are made of their indices."""

    count: int
    path: Callable[[int], str]
    patch: Template
    per_second: int = 100
    """0: as fast as they are answered."""

    async def run(self, run: Run) -> None:
        updates = (partial(run.patch, self.path(n), self.patch(n)) for n in range(self.count))
        if self.per_second:
            await _at_rate(updates, self.per_second, run)
        else:
            await at_once(updates)


async def _at_rate(acts: Iterable[Act], per_second: int, run: Run) -> None:
    moments = ((n / per_second, act) for n, act in enumerate(acts))
    await paced(moments, clock=run.clock)


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for the pods that were not waited for when they were created."""

    is_attempted: bool = False
    """Until the scheduler has looked at each, even if it is not bound."""

    async def run(self, run: Run) -> None:
        if self.is_attempted:
            await run.until_attempted(run.waiting)
        else:
            await run.until_bound(run.waiting)
            run.waiting.clear()


@dataclass(frozen=True, slots=True)
class Churn:
    """Until the workload ends, create objects; with *recreates*, delete each before the next."""

    templates: Mapping[str, Template]
    """By the path of their collection, see Run.collection."""
    seconds: float
    """Between two requests."""
    recreates: bool = False

    async def run(self, run: Run) -> None:
        await run.in_background(
            *(self._churn(path, template, run) for path, template in self.templates.items())
        )

    async def _churn(self, path: str, template: Template, run: Run) -> None:
        path = await run.collection(path, CHURN)
        for n in itertools.count():
            obj = template(n)
            name = obj["metadata"].setdefault("name", f"churn-{n}")
            await run.create(path, obj)
            await run.clock.sleep(self.seconds)
            if self.recreates:
                await run.client.request("DELETE", f"{path}/{name}")
                await run.clock.sleep(self.seconds)
