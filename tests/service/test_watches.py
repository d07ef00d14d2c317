"""Where the scheduler watches PodGroups: in the version that the API server serves, if it does."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from berth.kube.client.contact import Contact
from berth.kube.client.errors import NotFoundError
from berth.kube.client.writes.pod_groups import path_of
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.pod_group import DisruptionMode, PodGroup
from berth.runtime.clock import FakeClock
from berth.service.watches import LOOK_SECONDS, Watches
from tests.harness import Harness
from tests.kube.informer.scripted import initial_end, line

GROUP = "/apis/scheduling.k8s.io"
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "featureGates": {"GenericWorkload": True, "GangScheduling": True},
}
META = {"name": "g", "namespace": "default", "uid": "u", "resourceVersion": "1"}
MODES: Mapping[str, Any] = {"v1alpha2": "PodGroup", "v1beta1": {"all": {}}}


class Api:
    """Serves nodes, pods, and one PodGroup in some versions."""

    def __init__(self, *versions: str, says_version: bool = True) -> None:
        self.versions: Sequence[str] = versions
        self.watched: list[str] = []
        self._says_version = says_version

    def _group(self, version: str) -> Any:
        policy = {"gang": {"minCount": 2}}
        group: dict[str, Any] = {
            "metadata": META,
            "spec": {"schedulingPolicy": policy, "disruptionMode": MODES[version]},
        }
        if self._says_version:
            group |= {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup"}
        return group

    async def request(self, *args: Any, **_more: Any) -> bytes:
        if args[1] in [f"{GROUP}/{version}" for version in self.versions]:
            resource = {"name": "podgroups", "kind": "PodGroup", "namespaced": True}
            return msgspec.json.encode({"resources": [resource]})
        raise NotFoundError(404, "NotFound", "the server could not find the requested resource")

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        self.watched.append(path)
        if path.startswith(GROUP):
            yield line("ADDED", self._group(path.split("/")[3]))
        yield initial_end(2)
        await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def watching(api: Api) -> AsyncIterator[tuple[Harness, FakeClock]]:
    """Run the watches of a scheduler on *api* until it may schedule."""
    harness, clock, may_schedule = Harness(config=CONFIG), FakeClock(), asyncio.Event()
    watches = Watches(
        api,
        harness.core.handlers,
        known_pods={},
        contact=Contact(clock),
        extenders=harness.extenders,
        clock=clock,
        rng=random.Random(0),
    )

    async def schedule() -> None:
        may_schedule.set()
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(watches.run(then=schedule), name="watches")
    await may_schedule.wait()
    try:
        yield harness, clock
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("versions", "says_version", "want"),
    [
        pytest.param(["v1alpha2"], True, "v1alpha2", id="that of 1.36"),
        pytest.param(["v1beta1"], True, "v1beta1", id="that of 1.37"),
        pytest.param(["v1alpha2", "v1beta1"], True, "v1beta1", id="of both, the newer one"),
        pytest.param(["v1beta1"], False, "v1beta1", id="objects that do not say it themselves"),
    ],
)
async def test_groups_are_read_and_written_in_the_version_that_is_served(
    versions: list[str], says_version: bool, want: str
) -> None:
    api = Api(*versions, says_version=says_version)
    async with watching(api) as (harness, _):
        [group] = harness.listers.pod_groups
    assert [path for path in api.watched if "scheduling" in path] == [f"{GROUP}/{want}/podgroups"]
    assert path_of(group) == f"{GROUP}/{want}/namespaces/default/podgroups/g"
    assert group.spec.disruption_mode == DisruptionMode.POD_GROUP
    assert group.min_count == 2


def test_a_group_that_does_not_say_its_version_is_one_of_1_36() -> None:
    group = PodGroup(metadata=ObjectMeta(name="g", namespace="default"))
    assert path_of(group) == f"{GROUP}/v1alpha2/namespaces/default/podgroups/g"


async def test_groups_that_are_not_served_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    api = Api()
    caplog.set_level(logging.WARNING, "berth.service.watches")
    async with watching(api) as (harness, clock):
        [told] = [record for record in caplog.records if record.__dict__.get("kind") == "PodGroup"]
        assert told.__dict__["feature_gates"] == "--feature-gates=GenericWorkload=true"
        assert told.__dict__["runtime_config"] == (
            "--runtime-config=scheduling.k8s.io/v1beta1=true"
            " or --runtime-config=scheduling.k8s.io/v1alpha2=true"
        )
        assert not list(harness.listers.pod_groups)

        api.versions = ["v1alpha2"]
        while harness.listers.pod_groups.is_empty:
            clock.advance(LOOK_SECONDS)
            await asyncio.sleep(0)
    assert api.watched[-1] == f"{GROUP}/v1alpha2/podgroups"
