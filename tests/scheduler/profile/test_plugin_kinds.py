"""Kinds of objects that plugins declare: watched, listed, and what waits for them is woken."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from berth import testing
from berth.insight.whatif.live import LiveSnapshots
from berth.insight.whatif.snapshot import decode
from berth.kube.objects.cluster import ReplicaSet
from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import from_object
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from berth.scheduler.framework.interface import EnqueueExtensions, Plugin
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import Listers, kinds_of, with_kinds
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.build import Registry, args_models, kinds_read, listers_of
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness

PATH = "/api/v1/configmaps"


class ConfigMap(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}  # noqa: RUF012 - msgspec gives each object its own


CONFIG_MAPS = Kind(PATH, ConfigMap, event="ConfigMap", wakes=ActionType.ADD | ActionType.UPDATE)


class Allowed(ScalarFilter, EnqueueExtensions):
    """Only the nodes that a ConfigMap lists."""

    NAME = "Allowed"
    READS: ClassVar[tuple[Kind[Any], ...]] = (CONFIG_MAPS,)

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        assert self.handle is not None
        found = self.handle.listers.of(CONFIG_MAPS).get("default", "allowed")
        allowed = found.data if found else {}
        return None if node_info.name in allowed else Status.unschedulable("node(s) not allowed")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent("ConfigMap", ActionType.ALL))]


class Other(Allowed):
    """Reads ConfigMaps in another way."""

    NAME = "Other"
    READS = (Kind(PATH, ConfigMap, params={"fieldSelector": "metadata.name=other"}),)


class Again(Allowed):
    """Reads them as Allowed does, as if its file had been loaded again."""

    NAME = "Again"
    READS = (Kind(PATH, ConfigMap, event="ConfigMap", wakes=ActionType.ADD),)


class ReplicaSets(Allowed):
    """Reads a kind that all schedulers list, but from somewhere else."""

    NAME = "ReplicaSets"
    READS = (Kind("/apis/example.com/v1/replicasets", ReplicaSet),)


def registry(*plugins: type[Plugin]) -> Registry:
    return {**IN_TREE, **{plugin.NAME: plugin for plugin in plugins}}


def config(*plugins: type[Plugin]) -> KubeSchedulerConfiguration:
    known = args_models(registry(*plugins))
    return from_object(testing.configuration(*plugins), source="test", args_models=known)


def harness_with(*plugins: type[Plugin]) -> Harness:
    return Harness(
        config=testing.configuration(*plugins),
        registry=registry(*plugins),
        listers=listers_of(config(*plugins), registry(*plugins)),
    )


def allowed(*names: str) -> ConfigMap:
    meta = ObjectMeta(name="allowed", namespace="default", resource_version="1")
    return ConfigMap(meta, data=dict.fromkeys(names, ""))


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param((), [], id="a plugin that is not enabled"),
        pytest.param((Allowed,), [PATH], id="an enabled one"),
        pytest.param((Allowed, Again), [PATH], id="two that read the same"),
    ],
)
def test_what_enabled_plugins_read_is_watched(
    plugins: tuple[type[Plugin], ...], want: list[str]
) -> None:
    found = listers_of(config(*plugins), registry(Allowed, Again))
    assert [kind.path for name, kind in kinds_of(found).items() if name == "ConfigMap"] == want


async def test_their_changes_wake_what_waits_for_them() -> None:
    harness = harness_with(Allowed)
    harness.put(node("n1"), node("n2"), pod("p"))
    await harness.until_idle()
    assert harness.placements() == {}

    harness.put(allowed("n2"))
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert harness.placements() == {"p": "n2"}


async def test_a_snapshot_has_them() -> None:
    harness = harness_with(Allowed)
    harness.put(node("n1"), allowed("n1"))
    written = b"".join(LiveSnapshots(harness.core).take().encode())

    read = decode(written, source="test", listers=with_kinds(kinds_read(registry(Allowed))))

    assert read.objects["ConfigMap"] == [allowed("n1")]
    assert "ConfigMap" not in decode(written, source="test").objects


def test_tests_of_plugins_have_them() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "allowed", "namespace": "default"},
        "data": {"n1": ""},
    }
    objects = [testing.node("n1"), testing.node("n2"), manifest]
    assert testing.run_filter(Allowed, testing.pod("p"), objects=objects) == {
        "n1": (),
        "n2": ("node(s) not allowed",),
    }
    placed = testing.schedule([testing.pod("p")], objects=objects, plugins=[Allowed])
    assert placed["default/p"].node == "n1"
    told = testing.explain(testing.pod("p"), objects=objects, plugins=[Allowed])
    assert testing.rejections(told, "Allowed") == {"n2": ("node(s) not allowed",)}


@pytest.mark.parametrize(
    ("plugins", "why"),
    [
        pytest.param(
            (Allowed, Other), "plugin 'Other': READS: ConfigMap at /api/v1/configmaps", id="params"
        ),
        pytest.param(
            (ReplicaSets,), "plugin 'ReplicaSets': READS: ReplicaSet at /apis/example", id="path"
        ),
    ],
)
def test_objects_of_one_kind_are_read_in_one_way(plugins: tuple[Any, ...], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        listers_of(config(*plugins), registry(*plugins))


def test_a_reload_that_needs_another_watch_is_refused() -> None:
    plain = harness_with()
    with pytest.raises(ConfigError, match="reads ConfigMap at /api/v1/configmaps: it takes a rest"):
        plain.core.reconfigure(config(Allowed), registry(Allowed))


async def test_a_file_that_is_loaded_again_finds_its_objects() -> None:
    harness = harness_with(Allowed)
    again = type("Allowed", (Allowed,), {"READS": Again.READS})
    harness.core.reconfigure(config(Allowed), {**IN_TREE, "Allowed": again})
    harness.put(node("n1"), allowed("n1"), pod("p"))
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}


def test_there_is_nothing_where_objects_are_not_known() -> None:
    assert Listers().of(CONFIG_MAPS).is_empty
