"""The namespace controller: what it deletes, and what it says about the rest."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, DeleteCollection, Get, Patch, Replace
from berth.cluster.controllers import namespace_conditions
from berth.cluster.controllers.controller import Outcome, Plan
from berth.cluster.controllers.informers import Kind
from berth.cluster.controllers.namespace import SEEN, NamespaceController
from berth.cluster.controllers.namespace_conditions import Remains
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NamespaceView
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.registry import Registry
from berth.cluster.object_views import Meta, ObjectView
from berth.cluster.resources import Object
from berth.kube.client.errors import ApiError, NotFoundError, ServerError
from berth.runtime.clock import FakeClock

BIRTH = "2026-01-01T00:00:00Z"
NOW = 1_767_225_600.0
KINDS = [find("", "v1", plural) for plural in ("events", "pods", "configmaps")]
PODS, EVENTS, MAPS = (
    f"/api/v1/namespaces/demo/{plural}" for plural in ("pods", "events", "configmaps")
)
STATUS = "/api/v1/namespaces/demo/status"


def namespace(
    *, deleted: bool = True, finalizers: tuple[str, ...] = ("kubernetes",), **status: Any
) -> NamespaceView:
    meta = Meta("demo", "uid-demo", deletion_timestamp=BIRTH if deleted else None)
    return NamespaceView(meta, {"finalizers": list(finalizers)}, status)


def item(*, ends: str | None = BIRTH, finalizers: tuple[str, ...] = ()) -> Object:
    return {"metadata": {"name": "x", "deletionTimestamp": ends, "finalizers": list(finalizers)}}


class World:
    """A namespace on its way out, in a server of three kinds."""

    def __init__(self, view: NamespaceView | None = None) -> None:
        self.clock = FakeClock(NOW)
        self.registry = Registry(KINDS)
        self.namespaces: Table[NamespaceView] = Table()
        self.controller = NamespaceController(self.namespaces, self.registry, clock=self.clock)
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        self.namespaces.on_add(view or namespace())

    def step(
        self,
        left: Mapping[str, list[Object]] | None = None,
        errors: Mapping[type[Action], ApiError] | None = None,
        **list_meta: Any,
    ) -> Plan:
        """Plan and answer: only the paths in *left* hold something."""
        plan = self.controller.plan("demo")
        for action in plan.actions:
            error = (errors or {}).get(type(action))
            answer = b""
            if isinstance(action, Get) and error is None:
                page = {"metadata": list_meta, "items": (left or {}).get(action.path, [])}
                answer = msgspec.json.encode(page)
            if isinstance(action, Patch):
                old = self.namespaces.get("demo")
                assert old is not None
                new = msgspec.structs.replace(old, status=action.body["status"])
                self.namespaces.on_update(old, new)
            self.controller.finished("demo", Outcome(action, answer=answer, error=error))
        return plan

    def conditions(self) -> dict[str, tuple[str, str, str]]:
        found = self.namespaces.get("demo")
        assert found is not None
        return {
            condition["type"]: (condition["status"], condition["reason"], condition["message"])
            for condition in found.status["conditions"]
        }


def look(*paths: str) -> list[Action]:
    return [Get(path, {"limit": str(SEEN)}) for path in paths]


def delete(*paths: str) -> list[Action]:
    return [DeleteCollection(path) for path in paths]


def test_pods_go_first_then_the_rest_then_the_namespace() -> None:
    world = World()
    plans = [world.step().actions for _ in range(4)]
    (report,) = world.step().actions
    (last,) = world.step().actions

    assert plans == [delete(PODS), look(PODS), delete(EVENTS, MAPS), look(EVENTS, MAPS)]
    assert isinstance(report, Patch)
    assert report.path == STATUS
    assert {status for status, _, _ in world.conditions().values()} == {"False"}
    assert isinstance(last, Replace)
    assert (last.path, last.body["spec"]) == (
        "/api/v1/namespaces/demo/finalize",
        {"finalizers": []},
    )


def test_pods_are_waited_for_and_everything_is_tried_again() -> None:
    world = World()
    pods = {PODS: [item(ends="2026-01-01T00:00:30Z")]}
    world.step()
    world.step(pods, remainingItemCount=41)
    waiting = world.step()
    again = [world.step(pods).actions for _ in range(2)]

    assert waiting.again == 16.0
    assert again == [delete(PODS), look(PODS)]
    assert world.conditions() == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: pods. has 42 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    }


def test_nobody_waits_longer_than_the_last_object_lives() -> None:
    world = World()
    pods: Table[ObjectView] = Table()
    world.controller.follow([Kind(KINDS[1], pods)])
    world.controller.follow([Kind(KINDS[1], pods)])
    one, other = (ObjectView(Meta(name, f"uid-{name}", "demo")) for name in ("a", "b"))
    pods.on_add(one)
    pods.on_add(other)
    world.step()
    world.enqueued.clear()

    pods.on_delete(one)
    assert world.enqueued == []
    pods.on_delete(other)
    assert world.enqueued == ["demo"]


def test_finalizers_are_named() -> None:
    world = World()
    held = {MAPS: [item(finalizers=("a.io/x", "b.io/y")), item(finalizers=("a.io/x",))]}
    for _ in range(4):
        world.step(held)
    waiting = world.step()

    assert waiting.again == 8.5
    conditions = world.conditions()
    assert conditions["NamespaceContentRemaining"][2] == (
        "Some resources are remaining: configmaps. has 2 resource instances"
    )
    assert conditions["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: "
        "a.io/x in 2 resource instances, b.io/y in 1 resource instances",
    )
    assert conditions["NamespaceDeletionContentFailure"][0] == "False"


def test_what_cannot_be_deleted_is_said_and_tried_again() -> None:
    world = World()
    refused = ServerError(500, "InternalError", "webhook is away")
    world.step(errors={DeleteCollection: refused})
    for _ in range(2):
        world.step()
    again = world.step()

    assert world.conditions()["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: webhook is away",
    )
    assert again.actions == delete(PODS)
    assert again.is_independent


def test_what_cannot_be_looked_at_may_still_be_there() -> None:
    world = World()
    world.step()
    world.step(errors={Get: ServerError(500, "InternalError", "no")})
    world.step()

    assert world.conditions()["NamespaceDeletionContentFailure"][0] == "True"
    assert world.step().actions == delete(PODS)


def test_a_kind_that_is_served_no_more_holds_nothing() -> None:
    world = World()
    world.step(errors={DeleteCollection: NotFoundError(404, "NotFound", "")})
    assert world.step().actions == delete(EVENTS, MAPS)


def test_a_kind_that_is_served_meanwhile_is_emptied_too() -> None:
    world = World()
    for _ in range(4):
        world.step()
    world.registry.add(find("", "v1", "secrets"))
    secrets = "/api/v1/namespaces/demo/secrets"

    assert [world.step().actions for _ in range(2)] == [delete(secrets), look(secrets)]


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(namespace(deleted=False), id="not being deleted"),
        pytest.param(namespace(finalizers=("other",)), id="let go already"),
    ],
)
def test_namespaces_to_leave_alone(view: NamespaceView) -> None:
    assert World(view).controller.plan("demo") == Plan()


def test_a_finalizer_of_somebody_else_stays() -> None:
    world = World(namespace(finalizers=("kubernetes", "example.com/mine")))
    for _ in range(5):
        world.step()
    (last,) = world.step().actions

    assert isinstance(last, Replace)
    assert last.body["spec"] == {"finalizers": ["example.com/mine"]}


def test_conditions_keep_their_time_while_their_status_is_the_same() -> None:
    some = [(find("", "v1", "pods"), Remains(1, Counter(), 9.0))]
    other: Object = {"type": "Other", "status": "True"}
    first = namespace_conditions.updated([other], "demo", [], [], now=NOW)
    second = namespace_conditions.updated(first, "demo", some, [], now=NOW + 60)

    times = {each["type"]: each.get("lastTransitionTime") for each in second}
    assert times.pop("NamespaceContentRemaining") == "2026-01-01T00:01:00Z"
    assert set(times.values()) == {BIRTH, None}
    assert second[0] is other


def test_what_nothing_holds_is_unexpected() -> None:
    pods = [(find("", "v1", "pods"), Remains(2, Counter(), -1.0))]
    found = namespace_conditions.updated([], "demo", pods, [], now=NOW)
    messages = {each["type"]: each["message"] for each in found}

    assert messages["NamespaceDeletionContentFailure"] == (
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in "
        "namespace: demo for gvr: /v1, Resource=pods"
    )
