"""Whatever the graph of owners and the order of deletions: the collector and the real writes.

The API server is the one of the embedded cluster without HTTP; watches lag behind as hypothesis
says.
"""

import random
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.cluster.access.users import ADMIN
from berth.cluster.actions import Action, Delete, Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.garbage_collector import GarbageCollector
from berth.cluster.controllers.informers import Kind
from berth.cluster.controllers.table import Table
from berth.cluster.errors import StatusError
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.registry import Registry
from berth.cluster.object_views import ObjectView
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.log import ChangeType, Cursor
from berth.cluster.storage.store import Store
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.patch import merge_patch
from berth.kube.client.errors import ApiError, ConflictError, NotFoundError
from berth.runtime.clock import FakeClock
from tests.cluster.serving import open_door

T = TypeVar("T")

RESOURCES = (
    find("", "v1", "configmaps"),
    find("", "v1", "secrets"),
    find("rbac.authorization.k8s.io", "v1", "clusterroles"),
)
NAMESPACES = ("a", "b")
CONTEXT = WriteContext(ADMIN, "test")
decode = msgspec.json.Decoder(ObjectView).decode


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that does not wait for anything."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("it waits")


class World:
    """A server of three kinds, and a collector that watches it, sooner or later."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.store = Store()
        self.writes = ApiServer(
            Registry(RESOURCES),
            self.store,
            admission=open_door,
            clock=clock,
            rng=random.Random(1),
        ).writes
        self.tables: dict[str, Table[ObjectView]] = {
            each.storage_key: Table() for each in RESOURCES
        }
        self.cursors: dict[str, Cursor] = {
            each.storage_key: self.store.watch(each.storage_key, self.store.version)
            for each in RESOURCES
        }
        self.collector = GarbageCollector(EventRecorder(lambda _: None, "gc", clock))
        self.queue: dict[str, None] = {}
        self.collector.subscribe(lambda key: self.queue.setdefault(key))
        self.collector.follow(Kind(each, self.tables[each.storage_key]) for each in RESOURCES)

    def objects(self) -> Iterator[tuple[ResourceType, Object]]:
        for resource in RESOURCES:
            for stored in self.store.list(resource.storage_key):
                yield resource, stored.decode()

    def deliver(self, storage_key: str, count: int) -> bool:
        """Let the watch of one kind show its next changes; tell whether there were any."""
        changes = self.cursors[storage_key].take(count)
        table = self.tables[storage_key]
        for change in changes:
            new = decode(change.stored.body)
            if change.type is ChangeType.DELETED:
                table.on_delete(decode(change.old.body) if change.old else new)
            elif change.old is None:
                table.on_add(new)
            else:
                table.on_update(decode(change.old.body), new)
        return bool(changes)

    def collect(self) -> bool:
        """Plan for one object and do it; tell whether there was one."""
        key = next(iter(self.queue), None)
        if key is None:
            return False
        del self.queue[key]
        plan = self.collector.plan(key)
        for action in plan.actions:
            error: ApiError | None = None
            answer = b""
            try:
                answer = self.perform(action)
            except StatusError as exc:
                types = {404: NotFoundError, 409: ConflictError}
                error = types.get(exc.code, ApiError)(exc.code, exc.reason, exc.message)
                self.queue.setdefault(key)  # after a while
            self.collector.finished(key, Outcome(action, answer=answer, error=error))
        if plan.again is not None:
            self.queue.setdefault(key)
        return True

    def perform(self, action: Action) -> bytes:
        assert isinstance(action, Get | Patch | Delete), action
        resource, namespace, name = self.target(action.path)
        match action:
            case Get():
                return self.writes.get(resource, namespace, name).body
            case Patch(_, body):
                self.patch(resource, namespace, name, body)
            case Delete():
                found = self.writes.get(resource, namespace, name).decode()
                is_kept = self.is_kept(resource, found)
                options = DeleteOptions(
                    propagation=action.propagation,
                    uid=action.uid,
                    resource_version=action.resource_version,
                )
                at_once(self.writes.delete(resource, namespace, name, options, CONTEXT))
                assert not is_kept, found
        return b""

    def patch(self, resource: ResourceType, namespace: str, name: str, patch: Object) -> None:
        def change(current: Object) -> Object:
            patched: Object = merge_patch(current, patch)
            return patched

        at_once(self.writes.update(resource, namespace, name, change, CONTEXT))

    @contextmanager
    def unless_gone(self) -> Iterator[None]:
        try:
            yield
        except StatusError as exc:
            if exc.code != 404:
                raise

    def target(self, path: str) -> tuple[ResourceType, str, str]:
        steps = path.split("/")
        resource = next(each for each in RESOURCES if each.plural == steps[-2])
        return resource, steps[-3] if resource.namespaced else "", steps[-1]

    def owner_of(self, obj: Object, reference: Object) -> Object | None:
        """Return the object that *reference* of *obj* means, if it is there."""
        resource = next(each for each in RESOURCES if each.kind == reference["kind"])
        namespace = obj["metadata"].get("namespace", "") if resource.namespaced else ""
        if resource.namespaced and not namespace:
            return None
        for stored in self.store.list(resource.storage_key):
            if stored.key == (namespace, reference["name"]) and stored.uid == reference["uid"]:
                return stored.decode()
        return None

    def is_kept(self, resource: ResourceType, obj: Object) -> bool:
        """Whether an owner is there that is not being deleted."""
        for reference in obj["metadata"].get("ownerReferences") or []:
            if not resource.namespaced and reference["kind"] != "ClusterRole":
                return True  # nobody can tell
            owner = self.owner_of(obj, reference)
            if owner is not None and "deletionTimestamp" not in owner["metadata"]:
                return True
        return False

    def settle(self) -> None:
        for _ in range(5_000):
            delivered = [self.deliver(key, 1_000) for key in self.cursors]
            if not self.collect() and not any(delivered):
                return
        raise AssertionError("it never ends")


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Creations, each with owners among those before, deletions, and what happens in between."""
    found: list[tuple[Any, ...]] = []
    count = draw(st.integers(2, 8))
    for number in range(count):
        before = st.lists(st.integers(0, max(number - 1, 0)), max_size=2, unique=True)
        owners = draw(before) if number else []
        found.append(
            (
                "create",
                draw(st.integers(0, 2)),
                draw(st.sampled_from(NAMESPACES)),
                [(owner, draw(st.booleans())) for owner in owners],
            )
        )
    later: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
        st.tuples(
            st.just("delete"),
            st.integers(0, count - 1),
            st.sampled_from(("Background", "Foreground", "Orphan")),
        ),
        st.tuples(st.just("deliver"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("collect")),
        st.tuples(st.just("adopt"), st.integers(0, count - 1), st.integers(0, count - 1)),
    )
    return [*found, *draw(st.lists(later, max_size=20))]


ADOPTED_TOO_LATE_TO_BE_SEEN: list[tuple[Any, ...]] = [
    ("create", 0, "a", []),
    ("create", 0, "a", [(0, True)]),
    ("create", 0, "a", []),
    ("deliver", 0, 3),
    ("delete", 0, "Background"),
    ("deliver", 0, 3),
    ("adopt", 1, 2),
    ("collect",),
]


@settings(max_examples=100, deadline=None)
@example(ADOPTED_TOO_LATE_TO_BE_SEEN)
@given(steps())
def test_nothing_outlives_its_owners_and_nothing_dies_before_them(
    script: list[tuple[Any, ...]],
) -> None:
    world = World()
    made: list[tuple[ResourceType, str, str, Object]] = []
    for step in script:
        match step:
            case ("create", kind, namespace, owners):
                resource = RESOURCES[kind]
                namespace = namespace if resource.namespaced else ""
                references = [refer(made[each], blocking=block) for each, block in owners]
                name = f"o{len(made)}"
                body = {"metadata": {"name": name, "ownerReferences": references}}
                stored = at_once(world.writes.create(resource, namespace, body, CONTEXT))
                made.append((resource, namespace, name, stored.decode()))
            case ("delete", number, propagation):
                resource, namespace, name, _ = made[number]
                options = DeleteOptions(propagation=propagation)
                with world.unless_gone():
                    at_once(world.writes.delete(resource, namespace, name, options, CONTEXT))
            case ("adopt", number, other):
                resource, namespace, name, _ = made[number]
                patch = {"metadata": {"ownerReferences": [refer(made[other], blocking=True)]}}
                with world.unless_gone():
                    world.patch(resource, namespace, name, patch)
            case ("deliver", kind, count):
                world.deliver(RESOURCES[kind].storage_key, count)
            case ("collect",):
                world.collect()
    world.settle()

    for resource, obj in world.objects():
        owned = obj["metadata"].get("ownerReferences")
        assert not owned or world.is_kept(resource, obj) or is_circular(world, obj), obj
        assert "deletionTimestamp" not in obj["metadata"] or is_circular(world, obj), obj


def refer(made: tuple[ResourceType, str, str, Object], *, blocking: bool) -> Object:
    resource, _, name, obj = made
    return {
        "apiVersion": resource.group_version,
        "kind": resource.kind,
        "name": name,
        "uid": obj["metadata"]["uid"],
        "blockOwnerDeletion": blocking,
    }


def is_circular(world: World, obj: Object) -> bool:
    """Whether an object is, by way of its owners, its own owner."""
    seen: set[str] = set()
    ahead = [obj]
    while ahead:
        current = ahead.pop()
        for reference in current["metadata"].get("ownerReferences") or []:
            owner = world.owner_of(current, reference)
            if owner is None:
                continue
            if owner["metadata"]["uid"] == obj["metadata"]["uid"]:
                return True
            if owner["metadata"]["uid"] not in seen:
                seen.add(owner["metadata"]["uid"])
                ahead.append(owner)
    return False
