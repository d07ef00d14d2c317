"""A kind is declared once: with one more field of ``Listers`` it is watched, listed and read."""

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from berth.insight.offline.scenario import Scenario, objects_of
from berth.insight.whatif.snapshot import Snapshot, decode
from berth.kube.client.contact import Contact
from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.partial_objects import any_part
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from berth.scheduler.framework.interface import EnqueueExtensions
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import KINDS, Lister, Listers, kinds_of, listed
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Status
from berth.service.watches import Watches
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness
from tests.kube.informer.scripted import initial_end, line

PATH = "/apis/example.com/v1/widgets"


class Widget(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    size: int = 0
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class WithWidgets(Listers):
    widgets: Lister[Widget] = listed(  # noqa: RUF009 - it makes a field
        Kind(
            PATH,
            Widget,
            event=EventResource.POD_GROUP,
            wakes=ActionType.ADD | ActionType.DELETE,
            partly=any_part,
        )
    )


class NeedsWidget(ScalarFilter, EnqueueExtensions):
    """Rejects pods while there is no widget."""

    NAME = "NeedsWidget"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        assert self.handle is not None
        assert isinstance(self.handle.listers, WithWidgets)
        return Status.unschedulable("no widget") if self.handle.listers.widgets.is_empty else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent(EventResource.POD_GROUP, ActionType.ALL))]


CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NeedsWidget"}]}}}],
}


@pytest.fixture
def harness() -> Harness:
    """A cluster in which a pod waits for a widget."""
    return Harness(
        config=CONFIG, registry={**IN_TREE, NeedsWidget.NAME: NeedsWidget}, listers=WithWidgets
    )


def widget(name: str = "w", **more: Any) -> Widget:
    return Widget(ObjectMeta(name=name, namespace="default", resource_version="1"), **more)


class WidgetApi:
    """Serves a stream of widgets, and one that cannot be read as a whole."""

    def __init__(self) -> None:
        self.watched: list[str] = []

    async def request(self, *_args: Any, **_more: Any) -> bytes:
        raise AssertionError("lists are streamed")

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        self.watched.append(path)
        meta = {"namespace": "default", "resourceVersion": "1"}
        yield line("ADDED", {"metadata": meta | {"name": "w"}, "size": 3})
        yield line("ADDED", {"metadata": meta | {"name": "odd"}, "size": "large"})
        yield initial_end(2)
        await asyncio.get_running_loop().create_future()


async def test_it_is_watched(harness: Harness) -> None:
    api, clock = WidgetApi(), FakeClock()
    watches = Watches(
        api,
        harness.core.handlers,
        known_pods={},
        contact=Contact(clock),
        extenders=harness.extenders,
        clock=clock,
        rng=random.Random(0),
    )
    reflector = watches.reflectors[PATH]
    task = asyncio.create_task(reflector.run(), name="watch")
    await reflector.synced.wait()
    task.cancel()

    assert api.watched == [PATH]
    assert isinstance(harness.listers, WithWidgets)
    listed = {found.metadata.name: found.size for found in harness.listers.widgets}
    assert listed == {"w": 3, "odd": 0}, "a part counts, by the declaration"
    assert all(found.raw for found in harness.listers.widgets), "it has a field for its JSON"


async def test_its_changes_wake_pods_as_declared(harness: Harness) -> None:
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()
    assert harness.placements() == {}

    harness.put(widget())
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}


def test_other_changes_wake_nobody(harness: Harness) -> None:
    harness.put(pod("p"))
    assert harness.queue.pop() is not None
    harness.put(widget(), widget(size=2))
    harness.delete(widget())

    events = {"scheduling.k8s.io/PodGroupAdd", "scheduling.k8s.io/PodGroupDelete", "PodPopped"}
    assert set(harness.queue.in_flight_counts()) == events


def test_handling_it_is_measured(harness: Harness) -> None:
    harness.put(widget())
    name = "scheduler_event_handling_duration_seconds_count"
    labels = {"event": "scheduling.k8s.io/PodGroupAdd"}
    assert harness.registry.get_sample_value(name, labels) == 1


def test_a_snapshot_has_it() -> None:
    taken = Snapshot(objects={"Widget": [widget(size=3, raw=b"{}")]}, listers=WithWidgets)
    data = b"".join(taken.encode())
    (written,) = msgspec.json.decode(data)["items"]
    assert (written["apiVersion"], written["kind"]) == ("example.com/v1", "WidgetList")

    reread = decode(data, source="file", listers=WithWidgets)
    assert reread.objects == {"Widget": [widget(size=3)]}
    listers = reread.scenario().listers
    assert isinstance(listers, WithWidgets)
    assert list(listers.widgets) == [widget(size=3)]


def test_a_scenario_reads_it() -> None:
    listers = WithWidgets()
    raw = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 3}
    (obj,) = objects_of([raw], kinds=kinds_of(WithWidgets))
    Scenario(listers=listers).take_in(obj)
    assert [found.size for found in listers.widgets] == [3]


def test_without_its_declaration_it_is_nothing() -> None:
    assert "Widget" not in KINDS
    assert list(kinds_of(WithWidgets)) == [*KINDS, "Widget"]


@pytest.mark.parametrize(
    ("kind", "path", "api_version"),
    [
        pytest.param("Pod", "/api/v1/pods", "v1", id="of the core group"),
        pytest.param("ReplicaSet", "/apis/apps/v1/replicasets", "apps/v1", id="of a group"),
        pytest.param(
            "StorageClass",
            "/apis/storage.k8s.io/v1/storageclasses",
            "storage.k8s.io/v1",
            id="of a group with a domain",
        ),
    ],
)
def test_names_of_a_kind(kind: str, path: str, api_version: str) -> None:
    found = KINDS[kind]
    assert (found.name, found.path, found.api_version) == (kind, path, api_version)
