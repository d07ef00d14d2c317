"""The way of a write: in one step, or over again when a webhook took its time."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from berth.cluster.access.users import ADMIN
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.chain import Admission
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.deletion import Deletions
from berth.cluster.writes.field_manager import FieldManager
from berth.cluster.writes.identities import Identities
from berth.cluster.writes.pipeline import Writes
from berth.runtime.clock import FakeClock
from tests.cluster.at_once import at_once
from tests.cluster.serving import NODES, NOW, NOW_TEXT, Serving

TEST = WriteContext(ADMIN, "test")


def make_writes(store: Store, **more: Any) -> Writes:
    clock = FakeClock(NOW)
    return Writes(
        store,
        Deletions(store, clock=clock),
        clock=clock,
        identities=Identities(random.Random(7)),
        **{
            "admission": Admission(),
            "field_manager": FieldManager(Registry(RESOURCES).find),
            **more,
        },
    )


def node(name: str = "n", **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}}


def labelled(key: str) -> Callable[[Object], Object]:
    def change(obj: Object) -> Object:
        labels = {**obj["metadata"].get("labels", {}), key: "x"}
        return {**obj, "metadata": {**obj["metadata"], "labels": labels}}

    return change


class Slow:
    """A webhook; *meanwhile* happens while it thinks, the first time."""

    def __init__(self, meanwhile: Callable[[], Any]) -> None:
        self.meanwhile: Callable[[], Any] | None = meanwhile
        self.seen: list[tuple[Operation, Object | None]] = []

    def concerns(self, request: AdmissionRequest) -> bool:
        return request.context.field_manager != "other"

    async def mutate(self, request: AdmissionRequest) -> None:
        await asyncio.sleep(0)
        if request.object is not None:
            request.object = labelled("webhook")(request.object)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()

    async def validate(self, request: AdmissionRequest) -> None:
        self.seen.append((request.operation, request.old_object))


OTHER = WriteContext(ADMIN, "other")


def slow_writes() -> tuple[Store, Writes, Writes]:
    """A server with a webhook that a writer overtakes who has none: both on one store."""
    store = Store()
    direct = make_writes(store)
    at_once(direct.create(NODES, "", node(), TEST))
    slow = Slow(lambda: direct.update(NODES, "", "n", labelled("other"), OTHER))
    return store, direct, make_writes(store, admission=Admission(async_steps=[slow]))


async def test_a_write_that_waited_and_lost_starts_over() -> None:
    store, _, writes = slow_writes()
    await writes.update(NODES, "", "n", labelled("mine"), TEST)
    assert store.get("nodes", "", "n").labels == {"other": "x", "mine": "x", "webhook": "x"}


async def test_a_write_that_waited_and_named_a_version_is_refused() -> None:
    store, _, writes = slow_writes()
    version = str(store.get("nodes", "", "n").version)
    with pytest.raises(StatusError) as error:
        await writes.update(NODES, "", "n", lambda _current: node(resourceVersion=version), TEST)
    assert error.value.reason == "Conflict"
    assert store.get("nodes", "", "n").labels == {"other": "x"}


async def test_a_deletion_that_waited_starts_over_too() -> None:
    store, _, writes = slow_writes()
    last, is_gone = await writes.delete(NODES, "", "n", DeleteOptions(), TEST)
    assert (is_gone, last.labels) == (True, {"other": "x"})
    assert not store.list("nodes")


def test_steps_see_a_request_in_order_and_only_what_they_handle() -> None:
    calls: list[str] = []

    class Recorder(Step):
        def __init__(self, name: str) -> None:
            self.name = name

        def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
            return resource is NODES and operation is not Operation.DELETE and not subresource

        def admit(self, request: AdmissionRequest) -> None:
            calls.append(f"{self.name} admits {request.operation} {request.name}")

        def validate(self, request: AdmissionRequest) -> None:
            assert request.object is not None
            calls.append(f"{self.name} validates {request.object['metadata']['name']}")

    admission = Admission([Recorder("a"), Recorder("b")], last=[Recorder("z")])
    writes = make_writes(Store(), admission=admission)
    at_once(writes.create(NODES, "", {"metadata": {"generateName": "n-"}}, TEST))
    (name,) = [call.rsplit(maxsplit=1)[1] for call in calls if call.startswith("a validates")]
    assert name.startswith("n-")
    assert calls == [
        "a admits CREATE ",
        "b admits CREATE ",
        f"a validates {name}",
        f"b validates {name}",
        f"z validates {name}",
    ]
    calls.clear()
    status = {"status": {"phase": "Running"}}
    at_once(
        writes.update(NODES, "", name, lambda obj: {**obj, **status}, TEST, subresource="status")
    )
    at_once(writes.delete(NODES, "", name, DeleteOptions(), TEST))
    assert calls == []


def test_every_write_has_an_owner() -> None:
    store = Store()
    writes = make_writes(store)
    created, is_new = at_once(writes.apply(NODES, "", "n", configuration("a"), TEST))
    at_once(writes.update(NODES, "", "n", labelled("b"), OTHER))
    unchanged = at_once(writes.update(NODES, "", "n", lambda obj: obj, TEST))
    applied, is_new_again = at_once(writes.apply(NODES, "", "n", configuration("c"), TEST))

    assert (is_new, is_new_again) == (True, False)
    assert unchanged.version == created.version + 1
    assert applied.labels == {"b": "x", "c": "x"}
    managed = [
        (field["manager"], field["operation"], field["time"], field["fieldsV1"])
        for field in applied.decode()["metadata"]["managedFields"]
    ]
    assert managed == [
        ("test", "Apply", NOW_TEXT, {"f:metadata": {"f:labels": {"f:c": {}}}}),
        ("other", "Update", NOW_TEXT, {"f:metadata": {"f:labels": {"f:b": {}}}}),
    ]


def configuration(label: str, **metadata: Any) -> Object:
    obj = node(labels={label: "x"}, **metadata)
    return {"apiVersion": "v1", "kind": "Node", **obj}


def test_what_is_applied_to_an_object_of_a_uid_needs_that_object() -> None:
    writes = make_writes(Store())
    with pytest.raises(StatusError) as error:
        at_once(writes.apply(NODES, "", "n", configuration("a", uid="u"), TEST))
    assert error.value.message == (
        'Operation cannot be fulfilled on nodes "n": uid mismatch: the provided object specified '
        "uid u, and no existing object was found"
    )


@pytest.mark.parametrize(
    ("manager", "why"),
    [
        pytest.param(
            "x" * 129, "fieldManager: Too long: may not be more than 128 bytes", id="too long"
        ),
        pytest.param(
            "tab%09",
            r'fieldManager: Invalid value: "tab\t": invalid character U+0009 (at position 3)',
            id="not printable",
        ),
    ],
)
@pytest.mark.parametrize(("method", "kind"), [("POST", "CreateOptions"), ("PUT", "UpdateOptions")])
async def test_a_field_manager_has_a_name(manager: str, why: str, method: str, kind: str) -> None:
    path = "/api/v1/nodes" + ("/n" if method == "PUT" else "")
    code, answer = await Serving().request(method, f"{path}?fieldManager={manager}", node())
    assert (code, answer["message"]) == (422, f'{kind}.meta.k8s.io "" is invalid: {why}')
