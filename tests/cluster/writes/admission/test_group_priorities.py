"""PodGroups get the priority of their class (spec G2.4)."""

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gated import gated_kinds
from berth.cluster.kinds.gates import GENERIC_WORKLOAD
from berth.cluster.resources import Object
from tests.cluster.writes.booted import Booted

POD_GROUPS, _ = gated_kinds((GENERIC_WORKLOAD,), "1.36")
PRIORITY_CLASSES = find("scheduling.k8s.io", "v1", "priorityclasses")
PREEMPTION = (GENERIC_WORKLOAD, "GangScheduling", "WorkloadAwarePreemption")
PREEMPTING_GROUPS, _ = gated_kinds(PREEMPTION)


def priority_class(name: str, value: int, *, is_default: bool = False) -> Object:
    return {"metadata": {"name": name}, "value": value, "globalDefault": is_default}


def group(**spec: object) -> Object:
    meta = {"name": "g", "namespace": "default"}
    return {"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}}


@pytest.fixture
def preempting() -> Booted:
    cluster = Booted(*PREEMPTION)
    cluster.create(PRIORITY_CLASSES, priority_class("high", 1000))
    return cluster


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, (None, 0), id="it says nothing"),
        pytest.param({"priorityClassName": "high"}, ("high", 1000), id="it names a class"),
        pytest.param(
            {"priorityClassName": "high", "priority": 1000}, ("high", 1000), id="and its priority"
        ),
    ],
)
def test_a_group_gets_the_priority_of_its_class(
    preempting: Booted, spec: Object, want: tuple[str | None, int]
) -> None:
    stored = preempting.create(PREEMPTING_GROUPS, group(**spec))["spec"]
    assert (stored.get("priorityClassName"), stored["priority"]) == want


def test_a_group_without_a_class_is_of_the_default_one(preempting: Booted) -> None:
    preempting.create(PRIORITY_CLASSES, priority_class("usual", 7, is_default=True))
    stored = preempting.create(PREEMPTING_GROUPS, group())["spec"]
    assert (stored["priorityClassName"], stored["priority"]) == ("usual", 7)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"priorityClassName": "none"}, "no PriorityClass with name none was found",
            id="no such class",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 9999},
            r"the integer value of priority \(9999\) must not be provided in pod group spec; "
            "priority admission controller computed 1000 from the given PriorityClass name",
            id="another priority",
        ),
    ],
)  # fmt: skip
def test_a_priority_that_no_class_has_is_refused(
    preempting: Booted, spec: Object, why: str
) -> None:
    with pytest.raises(StatusError, match=why):
        preempting.create(PREEMPTING_GROUPS, group(**spec))


def test_without_the_gate_of_1_36_groups_have_no_priorities() -> None:
    cluster = Booted(GENERIC_WORKLOAD, release="1.36")
    stored = cluster.create(POD_GROUPS, group(priorityClassName="none", priority=9))["spec"]
    assert "priority" not in stored
    assert "priorityClassName" not in stored
