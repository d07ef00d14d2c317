"""Machines that come after a while, or not at all; and groups that rest after a failure."""

import random

import pytest

from berth.cluster.kubelet.node_template import NodeTemplate
from berth.tools.autoscaler.backoff import Backoffs
from berth.tools.autoscaler.cloud import Cloud
from berth.tools.autoscaler.options import AutoscalingOptions
from tests.tools.autoscaler.planning import group


class Machines:
    """Notes what runs."""

    def __init__(self) -> None:
        self.running: dict[str, NodeTemplate] = {}

    def add_node(self, template: NodeTemplate, name: str) -> None:
        assert name not in self.running
        self.running[name] = template

    def remove_node(self, name: str) -> None:
        self.running.pop(name, None)


@pytest.fixture
def machines() -> Machines:
    return Machines()


def test_machines_come_when_their_time_has_come(machines: Machines) -> None:
    cloud = Cloud([group(provision_seconds=60.0)], machines, rng=random.Random(1))
    assert cloud.increase_size("general", 2, now=10.0) == ["general-0", "general-1"]
    assert (cloud.target_size("general"), cloud.next_due()) == (2, 70.0)
    assert cloud.advance(69.0) == []
    assert machines.running == {}
    assert cloud.advance(70.0) == []
    assert list(machines.running) == ["general-0", "general-1"]
    assert cloud.next_due() is None


def test_a_name_is_given_once(machines: Machines) -> None:
    cloud = Cloud([group()], machines, rng=random.Random(1))
    cloud.increase_size("general", 1, now=0.0)
    cloud.advance(60.0)
    cloud.delete("general-0")
    assert (machines.running, cloud.target_size("general")) == ({}, 0)
    assert cloud.increase_size("general", 1, now=60.0) == ["general-1"]


def test_the_maximum_is_kept(machines: Machines) -> None:
    cloud = Cloud([group(max_size=2)], machines, rng=random.Random(1))
    with pytest.raises(ValueError, match="size increase too large, desired:3 max:2"):
        cloud.increase_size("general", 3, now=0.0)
    assert cloud.target_size("general") == 0


def test_what_fails_is_told_once(machines: Machines) -> None:
    cloud = Cloud([group(failure_rate=1.0)], machines, rng=random.Random(1))
    cloud.increase_size("general", 2, now=0.0)
    (failure,) = cloud.advance(60.0)
    assert (failure.group, failure.names) == ("general", ("general-0", "general-1"))
    assert (failure.code, cloud.target_size("general"), cloud.advance(61.0)) == (
        "outOfResource",
        0,
        [],
    )


def test_a_cluster_begins_with_the_nodes_it_had(machines: Machines) -> None:
    groups = [group(initial_size=2), group("b")]
    cloud = Cloud(groups, machines, rng=random.Random(1))
    cloud.start_at(0.0, nodes=[("general-7", "general"), ("alien", "unknown")])
    assert set(machines.running) == {"general-7", "general-0"}


def test_failures_double_the_rest() -> None:
    backoffs = Backoffs(AutoscalingOptions())
    assert backoffs.of("a", now=0.0) is None
    now, rests = 0.0, []
    for _ in range(5):
        backoffs.fail("a", code="c", message="m", now=now)
        found = backoffs.of("a", now=now)
        assert found is not None
        rests.append(found.duration)
        now = found.until
        assert backoffs.of("a", now=now) is None
    assert rests == [300.0, 600.0, 1200.0, 1800.0, 1800.0]
    backoffs.fail("a", code="c", message="m", now=now + 10_801.0)
    found = backoffs.of("a", now=now + 10_801.0)
    assert found is not None
    assert found.duration == 300.0, "forgotten after three hours"
    backoffs.succeed("a")
    assert backoffs.of("a", now=now + 10_801.0) is None


def test_a_failure_during_the_rest_does_not_double_it() -> None:
    backoffs = Backoffs(AutoscalingOptions())
    for now in (0.0, 10.0):
        backoffs.fail("a", code="c", message="m", now=now)
    found = backoffs.of("a", now=10.0)
    assert found is not None
    assert (found.duration, found.until) == (300.0, 310.0)
