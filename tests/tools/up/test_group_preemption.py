"""Groups that preempt, pod by pod or as one, on an embedded cluster (spec G19, 9-13 and 18)."""

from pathlib import Path
from typing import Any, Final

from tests.tools.up.group_scenarios import (
    GANGS,
    TOPOLOGY,
    Object,
    bound,
    by_release,
    check,
    condition,
    create,
    group,
    never,
    nodes,
    pod,
    pods,
    scenario,
    step,
    told,
)

AS_ONE: Final = (*GANGS, "WorkloadAwarePreemption")
UNSCHEDULABLE: Final = "pod group is unschedulable"
WAITS: Final = f"{UNSCHEDULABLE}, pod group is waiting for preemption to complete"
GROUP: Final = "pod group preemption: "
TOO_FEW: Final = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
NOT_ONE: Final = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
PREEMPTS: Final = (
    f"{UNSCHEDULABLE}, {TOO_FEW}, {GROUP}found a placement for podgroup, preempting 2 victims"
)
ONGOING: Final = (
    f"{UNSCHEDULABLE}, minCount (3) cannot be satisfied: 2 scheduled, 0 remaining,"
    f" {GROUP}ongoing preemption on nominated nodes"
)
IN_VAIN: Final = (
    f"{GROUP}{UNSCHEDULABLE}, minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
)
PATIENT_GROUP: Final = f"{GROUP}not eligible due to preemptionPolicy=Never."
PATIENT: Final = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "patient"},
    "value": 100,
    "preemptionPolicy": "Never",
}
CLASSES: Final = create(
    *(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("low", 10), ("high", 100))
    )
)


def lesser(*names: str, node: str = "n") -> Object:
    """Pods that run on a node, and leave one after the other, five seconds apart."""
    here = {"kubernetes.io/hostname": node}
    made = pods(
        *names,
        of="",
        priorityClassName="low",
        nodeSelector=here,
        terminationGracePeriodSeconds=30,
    )
    for seconds, each in enumerate(made, 1):
        each["metadata"]["annotations"] = {"berth.dev/stop-seconds": f"{5 * seconds}"}
    return create(*made)


def full(*names: str) -> Object:
    return step(
        "Pods of low priority run", CLASSES, lesser(*names), expect=[bound(len(names), of="none")]
    )


def high_group(name: str = "g", *, min_count: int, **spec: Any) -> Object:
    """A group of high priority; the number is what admission computes."""
    made = group(name, min_count=min_count)
    made["spec"] |= {"priorityClassName": "high", "priority": 100, **spec}
    return made


def high_pods(*names: str) -> list[Object]:
    return pods(*names, priorityClassName="high")


def evicted(*names: str) -> list[Object]:
    return [{"event": {"reason": "Preempted", "name": name}} for name in names]


def nominated(count: int) -> Object:
    return {"objects": {"kind": "Pod", "path": ".status.nominatedNodeName", "count": count}}


def in_words(kind: str, path: str, equals: str, **more: Any) -> Object:
    return {"objects": {"kind": kind, "path": path, "equals": equals, **more}}


def low_group(mode: str) -> Object:
    """Two pods of a group of low priority run."""
    running = group("v", min_count=2)
    running["spec"] |= {"priorityClassName": "low", "priority": 10, "disruptionMode": {mode: {}}}
    return step(
        "A group of low priority",
        CLASSES,
        create(running, *pods("v1", "v2", of="v", priorityClassName="low")),
        expect=[bound(2, of="v")],
    )


def victims(mode: str, gone: int) -> Object:
    """A group of two pods of low priority runs, and room for one is needed."""
    return scenario(
        nodes("n", 2, "1"),
        gates=AS_ONE,
        steps=[
            low_group(mode),
            step(
                "Another needs room for one pod",
                create(high_group(min_count=1), *high_pods("a")),
                expect=[
                    {**bound(1), "within": "2m"},
                    {"event": {"reason": "Preempted", "count": gone}},
                    bound(2 - gone, of="v"),
                ],
            ),
        ],
    )


CASES: Final = {
    "12, a group is evicted as a whole": victims("all", 2),
    "12, a group is evicted pod by pod": victims("single", 1),
}
OF_1_36: Final = {
    "9, pods of a gang preempt one by one": scenario(
        nodes("n", 1, "3"),
        steps=[
            full("low1", "low2"),
            step(
                "Three pods, room for one",
                create(group(min_count=3), *pods("a", "b", "c", priorityClassName="high")),
                expect=[
                    *evicted("low1", "low2"),
                    condition("message", WAITS),
                    {"pods": {"selector": "group=g", "message": WAITS, "count": 1}},
                    {"pods": {"message": "1 Insufficient cpu", "count": 2}},
                    nominated(3),
                    {**bound(3), "within": "2m"},
                ],
            ),
        ],
    ),
    "9, no victims for a gang that has no room even so": scenario(
        nodes("n", 1, "2"),
        steps=[
            full("low1"),
            step(
                "Three pods",
                create(group(min_count=3), *pods("a", "b", "c", priorityClassName="high")),
                expect=[condition("message", UNSCHEDULABLE), never("Preempted")],
            ),
        ],
    ),
    "10, a group preempts as one, by its own priority": scenario(
        nodes("n", 1, "3"),
        gates=AS_ONE,
        steps=[
            full("low1", "low2"),
            step(
                "Three pods without a priority, room for one",
                create(high_group(min_count=3), *pods("a", "b", "c")),
                expect=[
                    *evicted("low1", "low2"),
                    {"event": {"reason": "Preempted", "message": "Preempted by podgroup "}},
                    {"event": {"reason": "Preempted", "message": " on node cluster", "count": 2}},
                    in_words("Event", ".related.kind", "PodGroup", count=2),
                    in_words(
                        "Pod",
                        '.status.conditions[?(@.type=="DisruptionTarget")].message',
                        "default-scheduler: preempting to accommodate a higher priority podgroup",
                        count=2,
                    ),
                    nominated(3),
                    {**condition("status", "True"), "within": "2m"},
                    bound(3),
                ],
            ),
        ],
    ),
    "11, priorities of its pods play no role": scenario(
        nodes("n", 1, "2"),
        gates=AS_ONE,
        steps=[
            full("low1", "low2"),
            step(
                "Two pods of high priority in a group without",
                create(group(min_count=2), *pods("a", "b", priorityClassName="high")),
                expect=[
                    condition(
                        "message",
                        f"{UNSCHEDULABLE}, No preemption victims found for incoming preemptor",
                    ),
                    told("a", "not eligible due to workload aware preemption enabled"),
                    never("Preempted"),
                ],
            ),
        ],
    ),
    "13, a pod that never preempts keeps its group from it": scenario(
        nodes("n", 1, "2"),
        gates=AS_ONE,
        steps=[
            full("low1", "low2"),
            step(
                "One of two pods",
                create(
                    PATIENT,
                    high_group(min_count=2),
                    pod("a"),
                    pod("b", priorityClassName="patient"),
                ),
                expect=[
                    condition(
                        "message", f"{UNSCHEDULABLE}, not eligible due to preemptionPolicy=Never."
                    ),
                    never("Preempted"),
                ],
            ),
        ],
    ),
    "18, where groups may have constraints, one without preempts as ever": scenario(
        nodes("n", 1, "2"),
        gates=TOPOLOGY,
        steps=[
            full("low1", "low2"),
            step(
                "Two pods of high priority",
                create(group(min_count=2), *pods("a", "b", priorityClassName="high")),
                expect=[*evicted("low1", "low2"), {**bound(2), "within": "2m"}],
            ),
        ],
    ),
}
OF_1_37: Final = {
    "N9, a group preempts as one, and keeps its nominations while its victims leave": scenario(
        nodes("n", 1, "3"),
        steps=[
            full("low1", "low2"),
            step(
                "Three pods, room for one",
                create(high_group(min_count=3), *high_pods("a", "b", "c")),
                expect=[
                    *evicted("low1", "low2"),
                    {"event": {"reason": "Preempted", "message": "Preempted by podgroup "}},
                    in_words("Event", ".related.kind", "PodGroup", count=2),
                    condition("message", PREEMPTS),
                    {"pods": {"message": PREEMPTS, "count": 2}},
                    nominated(3),
                ],
            ),
            step(
                "It is tried again when one has left",
                expect=[
                    condition("message", ONGOING),
                    {**nominated(3), "always": "4s"},
                    bound(3),
                    condition("status", "True"),
                    {"event": {"reason": "Preempted", "count": 2}},
                ],
            ),
        ],
    ),
    "N9.2, no victims for a gang that has no room even so": scenario(
        nodes("n", 1, "2"),
        steps=[
            full("low1"),
            step(
                "Three pods",
                create(high_group(min_count=3), *high_pods("a", "b", "c")),
                expect=[
                    condition("message", f"{UNSCHEDULABLE}, {TOO_FEW}, {IN_VAIN}"),
                    never("Preempted"),
                ],
            ),
        ],
    ),
    "N9.1, a group that never preempts": scenario(
        nodes("n", 1, "2"),
        steps=[
            full("low1", "low2"),
            step(
                "Its pods say so",
                create(
                    PATIENT,
                    high_group(min_count=2),
                    *pods("a", "b", priorityClassName="patient"),
                ),
                expect=[
                    condition("message", f"{UNSCHEDULABLE}, {NOT_ONE}, {PATIENT_GROUP}"),
                    never("Preempted"),
                ],
            ),
        ],
    ),
    "N9.4, a pod evicts a group that is disrupted as one from all its nodes": scenario(
        nodes("n", 2, "1"),
        steps=[
            low_group("all"),
            step(
                "It needs room on one",
                create(pod("a", of="", priorityClassName="high")),
                expect=[
                    told("a", "on node n-", within="30s"),
                    {"event": {"reason": "FailedScheduling", "message": "preempting 2 victims"}},
                    {"event": {"reason": "Preempted", "count": 2}},
                    {**bound(1, of="none"), "within": "2m"},
                ],
            ),
        ],
    ),
}


@by_release(CASES, of_1_36=OF_1_36, of_1_37=OF_1_37)
def test_preemption(case: Object, release: str, tmp_path: Path) -> None:
    check(case, release, tmp_path)
