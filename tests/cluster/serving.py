"""An API server without sockets, serving a few kinds whose rules are as plain as can be."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import msgspec

from berth.cluster.http.server import ApiServer
from berth.cluster.kinds import builtin as kinds
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import VERBS, Object, ResourceType, Strategy, Subresource
from berth.cluster.schemas import builtin
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.chain import Admission
from berth.cluster.writes.admission.step import AsyncStep
from berth.cluster.writes.admission.steps import MakeAdmission
from berth.kube.field_errors import FieldError
from berth.runtime.clock import FakeClock

NOW = 1_700_000_000.0
NOW_TEXT = "2023-11-14T22:13:20Z"


def count_generations(new: Object, old: Object | None) -> None:
    if old is None:
        new["metadata"]["generation"] = 1
    elif new.get("spec") != old.get("spec"):
        new["metadata"]["generation"] += 1


def needs_containers(new: Object, _old: Object | None) -> list[FieldError]:
    if new["spec"].get("containers"):
        return []
    return [FieldError("spec.containers", "FieldValueRequired", "Required value")]


def default_restart_policy(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("restartPolicy", "Always")


def no_teapots(new: Object, _old: Object | None) -> list[FieldError]:
    phase = new.get("status", {}).get("phase")
    if phase != "Teapot":
        return []
    message = 'Invalid value: "Teapot": is not a phase'
    return [FieldError("status.phase", "FieldValueInvalid", message)]


def stumble(_obj: Object) -> None:
    raise ZeroDivisionError("a bug")


def terminate(namespace: Object) -> None:
    namespace["status"]["phase"] = "Terminating"


def unmanaged(obj: Object) -> Object:
    """Return *obj* without what it says of the managers of its fields."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def subresources(*names: str) -> dict[str, Subresource]:
    return {name: Subresource(name) for name in names}


PODS = ResourceType(
    group="",
    version="v1",
    kind="Pod",
    schema=builtin.schema("io.k8s.api.core.v1.Pod"),
    plural="pods",
    singular="pod",
    namespaced=True,
    subresources=subresources("status", "binding"),
    returned_when_gone=True,
    strategy=Strategy(
        default=default_restart_policy,
        prepare=count_generations,
        validate=needs_containers,
        validate_status=no_teapots,
        initial_status=lambda _pod: {"phase": "Pending"},
        graceful_seconds=lambda pod: 30 if pod["spec"].get("nodeName") else 0,
    ),
    selectable_fields={"spec.nodeName": lambda pod: pod["spec"].get("nodeName", "")},
)
NODES = ResourceType(
    group="",
    version="v1",
    kind="Node",
    schema=builtin.schema("io.k8s.api.core.v1.Node"),
    plural="nodes",
    singular="node",
    namespaced=False,
    subresources=subresources("status"),
    strategy=Strategy(keeps_status_on_create=True),
)
NAMESPACES = ResourceType(
    group="",
    version="v1",
    kind="Namespace",
    schema=builtin.schema("io.k8s.api.core.v1.Namespace"),
    plural="namespaces",
    singular="namespace",
    namespaced=False,
    verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    subresources=subresources("status", "finalize"),
    strategy=Strategy(deleting=terminate, initial_status=lambda _obj: {"phase": "Active"}),
)
DEPLOYMENTS = ResourceType(
    group="apps",
    version="v1",
    kind="Deployment",
    schema=builtin.schema("io.k8s.api.apps.v1.Deployment"),
    plural="deployments",
    singular="deployment",
    namespaced=True,
    subresources=subresources("scale", "status"),
    strategy=Strategy(prepare=count_generations, initial_status=lambda _obj: {}),
)
PRIORITY_CLASSES = ResourceType(
    group="scheduling.k8s.io",
    version="v1",
    kind="PriorityClass",
    schema=builtin.schema("io.k8s.api.scheduling.v1.PriorityClass"),
    plural="priorityclasses",
    singular="priorityclass",
    namespaced=False,
    strategy=Strategy(default=stumble),
)
"""A kind with a bug."""
QUESTIONS = tuple(each for each in kinds.RESOURCES if not each.is_stored)
RESOURCES = (PODS, NODES, NAMESPACES, DEPLOYMENTS, PRIORITY_CLASSES, *QUESTIONS)


FAITHFUL = (
    "failed to create typed patch object",
    "failed to convert new object",
    "failed to convert new typed object",
    "does not contain declared merge key",
)
"""What the API server answers with a 500, too: what is applied or merged does not fit its kind."""


def open_door(_store: Store, *, async_steps: Sequence[AsyncStep], **_: Any) -> Admission:
    """Let everything pass that no webhook stops."""
    return Admission(async_steps=async_steps)


class Serving:
    """The server, its clock and store, and a client that speaks JSON."""

    def __init__(
        self,
        *,
        log_capacity: int = 1000,
        clock: FakeClock | None = None,
        store: Store | None = None,
        resources: Sequence[ResourceType] = RESOURCES,
        admission: MakeAdmission | None = None,
    ) -> None:
        self.clock = clock or FakeClock(NOW)
        self.store = store or Store(log_capacity=log_capacity)
        self.registry = Registry(resources)
        self.server = ApiServer(
            self.registry,
            self.store,
            admission=admission or open_door,
            clock=self.clock,
            rng=random.Random(1),
        )
        self.server.open()
        transport = httpx.ASGITransport(app=self.server.app)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://cluster")

    async def request(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Return the status code and the decoded answer; bytes are sent as they are."""
        content = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        given = {"content-type": "application/json"} if body is not None else {}
        given |= {key.replace("_", "-"): value for key, value in headers.items()}
        response = await self.http.request(method, path, content=content, headers=given)
        self.store.check_invariants()
        try:
            return response.status_code, msgspec.json.decode(response.content)
        except msgspec.DecodeError:
            return response.status_code, response.text

    async def get(self, path: str) -> Any:
        """Return what is there, which must be."""
        code, answer = await self.request("GET", path)
        assert code == 200, answer
        return answer

    async def post(self, path: str, body: Any) -> Any:
        """Create, which must work."""
        code, answer = await self.request("POST", path, body)
        assert code == 201, answer
        return answer

    async def pods(self, *names: str) -> None:
        """Create plain pods in the namespace ``default``."""
        for name in names:
            await self.post("/api/v1/namespaces/default/pods", pod(name))

    async def watch(self, path: str, during: Callable[[], Any], *, seconds: float) -> list[Any]:
        """Watch *path*, let *during* happen and *seconds* pass; return the events."""
        request = asyncio.ensure_future(self.http.get(path))
        await self.settle()
        happened = during()
        if asyncio.iscoroutine(happened):
            await happened
        await self.settle()
        self.clock.advance(seconds)
        self.store.wake_due(self.clock.monotonic())
        response = await request
        assert response.headers["content-type"] == "application/json"
        return [msgspec.json.decode(line) for line in response.content.splitlines()]

    async def settle(self) -> None:
        """Let everyone run until they wait."""
        for _ in range(20):
            await asyncio.sleep(0)


def pod(name: str, **metadata: Any) -> Object:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
    }


def status(
    code: int, reason: str, message: str, details: Object | None = None
) -> tuple[int, Object]:
    """Return an answer that refuses."""
    body: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    if reason:
        body["reason"] = reason
    return code, body if details is None else {**body, "details": details}
