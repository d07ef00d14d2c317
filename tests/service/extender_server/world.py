"""An extender server in process, on the caches of a harness."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from berth.kube.client.errors import ApiError, FencedError, NotFoundError
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.profile.profile import Profile
from berth.service.extender_server.bindings import Bindings
from berth.service.extender_server.verbs import VerbResult, Verbs
from tests.builders import to_json
from tests.harness import Harness

Object = dict[str, Any]


class FakeApi:
    """Has the pods of the harness, and writes bindings there, or fails to."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self.bound: list[tuple[str, str]] = []
        self.requests: list[str] = []
        """Paths that were read."""
        self.bind_error: ApiError | None = None
        self.read_error: ApiError | None = None
        self.tells_watches = True
        """Whether the caches hear of a binding."""
        self.may_answer = asyncio.Event()
        """What binds wait for before they are made."""
        self.may_answer.set()
        self.may_leave = asyncio.Event()
        """What binds wait for before they leave."""
        self.may_leave.set()

    async def bind(
        self, pod: PodInfo, node_name: str, *, is_wanted: Callable[[], bool] | None = None
    ) -> None:
        await self.may_leave.wait()
        if is_wanted is not None and not is_wanted():
            raise FencedError("not sent")
        await self.may_answer.wait()
        if self.bind_error is not None:
            raise self.bind_error
        self.bound.append((pod.name, node_name))
        if self.tells_watches:
            self._harness.put(placed(pod.pod, node_name))

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        self.requests.append(path)
        if self.read_error is not None:
            raise self.read_error
        *_, namespace, _, name = path.split("/")
        pod = self._harness.cluster.pods.get(f"{namespace}/{name}")
        if method != "GET" or pod is None:
            raise NotFoundError(404, "NotFound", f"pods {name!r} not found")
        return to_json(pod)

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError(f"{path} is not watched here")


class World:
    """Asks in JSON, as HTTP clients do."""

    def __init__(self, harness: Harness | None = None) -> None:
        self.harness = harness or Harness()
        self.api = FakeApi(self.harness)
        self.seen: dict[str, Pod] = self.harness.cluster.pods
        """Pods that the watch told of."""
        self.bindings = Bindings(
            self.harness.cache,
            queue=self.harness.queue,
            pod_lookup=lambda key: self.seen.get(key),
            client=self.api,
            binder=self.api,
            clock=self.harness.clock,
        )
        nominator = self.harness.queue.nominator
        self.answers = Verbs(
            self.harness.scheduler.profiles,
            cache=self.harness.cache,
            bindings=self.bindings,
            budgets=DisruptionBudgets(self.harness.cluster.listers.pod_disruption_budgets),
            nominated=nominator.nominated_pods,
        )

    async def filter(self, pod: Pod, *names: str, **more: Any) -> Object:
        question = {"Pod": obj(pod), "Nodes": None, "NodeNames": list(names), **more}
        said: Object = await self.ask("filter", question)
        return said

    async def priorities(self, pod: Pod, *names: str, **more: Any) -> dict[str, int]:
        question = {"Pod": obj(pod), "Nodes": None, "NodeNames": list(names), **more}
        said = await self.ask("prioritize", question)
        return {each["Host"]: each["Score"] for each in said}

    async def preempt(self, pod: Pod, victims: Mapping[str, list[str]]) -> Object:
        """Ask in the meta form; return the answer by node."""
        meta = {
            node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
            for node, uids in victims.items()
        }
        question = {"Pod": obj(pod), "NodeNameToMetaVictims": meta, "NodeNameToVictims": None}
        said: dict[str, Object] = await self.ask("preempt", question)
        return said["NodeNameToMetaVictims"]

    async def bind(self, pod: Pod, node: str, *, gone: asyncio.Future[None] | None = None) -> str:
        """Ask for a bind; *gone*, when done, says that the caller does not wait any more."""
        meta = pod.metadata
        question = {
            "PodName": meta.name,
            "PodNamespace": meta.namespace,
            "PodUID": meta.uid,
            "Node": node,
        }
        error: str = (await self.ask("bind", question, gone=gone))["Error"]
        return error

    async def ask(
        self, verb: str, question: Object, *, gone: asyncio.Future[None] | None = None
    ) -> Any:
        answers = self.answers
        ask: dict[str, Callable[[Profile, bytes], Awaitable[VerbResult]]] = {
            "filter": answers.filter,
            "prioritize": answers.prioritize,
            "preempt": answers.preempt,
            "bind": partial(answers.bind, gone=gone or asyncio.Future()),
        }
        profile = next(iter(answers.profiles.values()))
        return msgspec.json.decode((await ask[verb](profile, msgspec.json.encode(question))).body)


def obj(thing: KubeStruct) -> Object:
    """Return *thing* as JSON has it."""
    decoded: Object = msgspec.json.decode(to_json(thing))
    return decoded


def placed(pod: Pod, node_name: str) -> Pod:
    replace = msgspec.structs.replace
    return replace(pod, spec=replace(pod.spec, node_name=node_name))
