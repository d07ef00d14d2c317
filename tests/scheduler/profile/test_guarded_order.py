"""A QueueSort plugin by others that is broken: pods are tried all the same."""

from typing import Any

import pytest

from berth.scheduler.framework.interface import QueueSortPlugin
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.profile.guard import SortKey
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness


class ByAge(QueueSortPlugin):
    """Orders by a label, whatever that comes to."""

    NAME = "ByAge"

    def sort_key(self, queued: QueuedPodInfo) -> Any:
        age = queued.pod_info.labels["age"]
        return int(age) if age.isdecimal() else age


CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"plugins": {"queueSort": {"enabled": [{"name": "ByAge"}], "disabled": [{"name": "*"}]}}}
    ],
}


def aged(name: str, age: str | None) -> Any:
    return pod(name, labels={} if age is None else {"age": age})


@pytest.mark.parametrize(
    ("ages", "want"),
    [
        pytest.param(["2", "1", "3"], ["p1", "p0", "p2"], id="keys that are right are kept to"),
        pytest.param([None, None], ["p0", "p1"], id="without keys the older pod comes first"),
        pytest.param(["1", "x"], ["p0", "p1"], id="so it does if keys cannot be compared"),
    ],
)
async def test_all_pods_are_tried(ages: list[str | None], want: list[str]) -> None:
    harness = Harness(config=CONFIG, registry={**IN_TREE, "ByAge": ByAge})
    for i, age in enumerate(ages):
        harness.put(aged(f"p{i}", age))
        harness.clock.advance(1)
    order = [queued.pod_info.name for queued in iter(harness.queue.pop, None)]

    assert order == want


async def test_errors_are_counted() -> None:
    harness = Harness(config=CONFIG, registry={**IN_TREE, "ByAge": ByAge})
    harness.put(node("n1"), aged("p", None))
    await harness.until_idle()

    labels = {"plugin": "ByAge", "extension_point": "QueueSort", "profile": "default-scheduler"}
    assert harness.registry.get_sample_value("berth_plugin_errors_total", labels)
    assert harness.placements() == {"p": "n1"}


def test_keys_that_are_alike_are_equal() -> None:
    assert SortKey(1, 5.0) == SortKey(1, 6.0)
    assert SortKey(1, 5.0) != SortKey(2, 5.0)
    assert SortKey(1, 5.0) != 1
