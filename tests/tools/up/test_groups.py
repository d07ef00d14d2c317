"""Groups of pods from their first manifest to the last bind, on an embedded cluster (spec G19).

Each scenario runs the API server, the controllers, the scheduler and hollow nodes on a clock that
does not wait.
"""

from pathlib import Path
from typing import Final

from tests.tools.up.group_scenarios import (
    LONG,
    TOPOLOGY,
    Cases,
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

UNSCHEDULABLE: Final = "pod group is unschedulable"
HELD: Final = (
    f"{UNSCHEDULABLE}, waiting for minCount pods from a gang to be scheduled, one or more"
    " plugins asked to wait and no plugin rejected pod"
)
TOO_FEW: Final = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
NOWHERE: Final = "no feasible placements found"
NO_VICTIMS: Final = "pod group preemption: No preemption victims found for incoming preemptor"
DIFFERENT: Final = "all pods in a single pod group should have the same .spec.schedulerName set"
OF_ONE_PRIORITY: Final = (
    "all pods in a single pod group should have the same priority as the pod group's priority,"
    " got 100 and 0"
)
RACKS: Final = (nodes("a-", 2, "2", rack="a"), nodes("b-", 3, "2", rack="b"))


def on_rack(rack: str, count: int) -> Object:
    return bound(count, nodeSelector=f"rack={rack}")


def without_room(*, of_the_group: str, of_those_that_fit: str) -> Cases:
    """A gang of three with room for two, by the messages of the group and of the two."""
    steps = [
        step(
            "Three pods, room for two",
            create(group(min_count=3), *pods("a", "b", "c")),
            expect=[
                {"pods": {"message": of_those_that_fit, "count": 2}},
                {"pods": {"message": "1 Insufficient cpu", "count": 1}},
                condition("status", "False"),
                condition("reason", "Unschedulable"),
                condition("message", of_the_group),
                {**bound(0), "always": LONG},
                {"objects": {"kind": "Pod", "path": ".status.nominatedNodeName", "count": 0}},
            ],
        ),
        step(
            "Another node",
            {"addNodes": nodes("m", 1, "2")},
            expect=[bound(3), condition("status", "True")],
        ),
    ]
    name = "3 and 4, a gang without room waits whole, and starts whole on a new node"
    return {name: scenario(nodes("n", 1, "2"), steps=steps)}


def of_two_schedulers(*of_the_group: Object) -> Cases:
    """Two pods that name different schedulers, and what is said of their group."""
    only = step(
        "One names another scheduler",
        create(group(min_count=2), pod("a"), pod("b", schedulerName="other")),
        expect=[
            told("a", DIFFERENT),
            told("b", DIFFERENT),
            *of_the_group,
            {**bound(0), "always": LONG},
        ],
    )
    profiles: list[Object] = [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]
    name = "7, pods of different schedulers are no group"
    return {name: scenario(nodes("n", 1, "4"), profiles=profiles, steps=[only])}


def without_rack(message: str) -> Cases:
    """Three pods, and two racks with room for two: what the group's condition says."""
    only = step(
        "Three pods, two CPUs on each rack",
        create(group(min_count=3, topology="rack"), *pods("a", "b", "c")),
        expect=[condition("message", message), {**bound(0), "always": LONG}],
    )
    racks = [nodes(rack, 2, "1", rack=rack) for rack in "ab"]
    return {"15, no rack has room": scenario(*racks, gates=TOPOLOGY, steps=[only])}


def without_label(message: str) -> Cases:
    """A constraint on a label that no node has: what the group's condition says."""
    only = step(
        "A constraint on racks",
        create(group(min_count=2, topology="rack"), *pods("a", "b")),
        expect=[told("a", NOWHERE), told("b", NOWHERE), condition("message", message)],
    )
    return {"16, no node has the label": scenario(nodes("n", 2, "2"), gates=TOPOLOGY, steps=[only])}


CASES: Final = {
    "1, pods wait in silence for their PodGroup": scenario(
        nodes("n", 1, "4"),
        steps=[
            step(
                "Pods without a group",
                create(*pods("a", "b", "c")),
                expect=[
                    bound(0),
                    {"objects": {"kind": "Pod", "path": ".status.conditions", "count": 0}},
                    never("FailedScheduling"),
                ],
            ),
            step(
                "The group comes",
                create(group(min_count=3)),
                expect=[bound(3), condition("status", "True"), condition("reason", "Scheduled")],
            ),
        ],
    ),
    "2, pods wait until there are enough": scenario(
        nodes("n", 1, "4"),
        steps=[
            step(
                "Two of three",
                create(group(min_count=3), *pods("a", "b")),
                expect=[{**bound(0), "always": LONG}, never("FailedScheduling")],
            ),
            step("The third", create(pod("c")), expect=[bound(3)]),
        ],
    ),
    "5, more pods than a gang needs": scenario(
        nodes("n", 1, "3"),
        steps=[
            step(
                "Four pods, of which two are needed and three fit",
                create(group(min_count=2), *pods("a", "b", "c", "d")),
                expect=[
                    bound(3),
                    {"pods": {"message": "1 Insufficient cpu", "count": 1}},
                    {**condition("status", "True"), "always": LONG},
                ],
            )
        ],
    ),
    "6, a basic group starts pod by pod": scenario(
        nodes("n", 1, "1"),
        steps=[
            step(
                "Three pods, room for one",
                create(group(), *pods("a", "b", "c")),
                expect=[
                    bound(1),
                    {"pods": {"message": "1 Insufficient cpu", "count": 2}},
                    condition("status", "True"),
                ],
            )
        ],
    ),
    "8, of two gangs with room for one and a bit, one starts": scenario(
        nodes("n", 2, "2"),
        steps=[
            step(
                "Created in turns",
                create(
                    group("g", min_count=3),
                    group("h", min_count=3),
                    *(pod(f"{of}-{i}", of=of) for i in range(3) for of in "gh"),
                ),
                expect=[
                    {"pods": {"selector": "group in (g,h)", "scheduled": True, "count": 3}},
                    *({**bound({"atLeast": 1, "atMost": 2}, of=of), "never": LONG} for of in "gh"),
                ],
            )
        ],
    ),
    "14, a gang goes to the rack that it fills best": scenario(
        *RACKS,
        gates=TOPOLOGY,
        steps=[
            step(
                "Three pods, four CPUs on one rack and six on the other",
                create(group(min_count=3, topology="rack"), *pods("a", "b", "c")),
                expect=[on_rack("a", 3)],
            )
        ],
    ),
    "14, what runs on a rack counts": scenario(
        *RACKS,
        gates=TOPOLOGY,
        steps=[
            step(
                "Two CPUs of the larger rack are used",
                create(*pods("x", "y", of="", nodeSelector={"rack": "b"})),
                expect=[bound(2, of="none")],
            ),
            step(
                "Three pods",
                create(group(min_count=3, topology="rack"), *pods("a", "b", "c")),
                expect=[on_rack("b", 3)],
            ),
        ],
    ),
    "17, a later member stays on the rack of the others": scenario(
        nodes("a", 1, "2", rack="a"),
        nodes("b", 1, "4", rack="b"),
        gates=TOPOLOGY,
        steps=[
            step(
                "Two pods fill the smaller rack",
                create(group(min_count=2, topology="rack"), *pods("a", "b")),
                expect=[on_rack("a", 2)],
            ),
            step(
                "A third comes",
                create(pod("c")),
                expect=[told("c", "Insufficient cpu"), {**bound(2), "always": LONG}],
            ),
        ],
    ),
    "19, a pod that is bound counts for a scheduler that was started since": scenario(
        nodes("n", 1, "2"),
        steps=[
            step(
                "The scheduler dies after the first bind of a gang",
                {"scheduler": "stop"},
                create(group(min_count=2), pod("a", nodeName="n"), pod("b")),
                expect=[bound(1)],
            ),
            step("Another starts", {"scheduler": "start"}, expect=[bound(2)]),
        ],
    ),
}


OF_1_36: Final = {
    **without_label(NOWHERE),
    **without_room(of_the_group=UNSCHEDULABLE, of_those_that_fit=HELD),
    **of_two_schedulers(
        {"objects": {"kind": "PodGroup", "path": ".status.conditions", "count": 0}}
    ),
    **without_rack(
        f"0/2 placements are available, first placement status: {UNSCHEDULABLE}",
    ),
}
OF_1_37: Final = {
    **without_label(f"{NOWHERE}, {NO_VICTIMS}"),
    **without_room(
        of_the_group=f"{UNSCHEDULABLE}, {TOO_FEW}, {NO_VICTIMS}",
        of_those_that_fit=f"{UNSCHEDULABLE}, {TOO_FEW}, {NO_VICTIMS}",
    ),
    **of_two_schedulers(condition("reason", "SchedulerError"), condition("status", "False")),
    **without_rack(
        "0/2 placements are available, first placement status:"
        f" {UNSCHEDULABLE}, {TOO_FEW}, {NO_VICTIMS}"
    ),
    "N8.3, members that are too many for the node, but not for the quorum": scenario(
        nodes("n", 1, "2"),
        steps=[
            step(
                "Four pods, of which three are needed, and two fit",
                create(group(min_count=3), *pods("a", "b", "c", "d")),
                expect=[
                    condition("message", f"{UNSCHEDULABLE}, {TOO_FEW}, {NO_VICTIMS}"),
                    {**bound(0), "always": LONG},
                ],
            ),
            step(
                "N8.1, a smaller quorum wakes them",
                {
                    "patch": {
                        "kind": "PodGroup",
                        "name": "g",
                        "patch": {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
                        "type": "merge",
                    }
                },
                expect=[
                    bound(2),
                    condition("status", "True"),
                    {"pods": {"message": "1 Insufficient cpu", "count": 2}},
                ],
            ),
        ],
    ),
    "N8.2, a pod has the priority of its group": scenario(
        nodes("n", 1, "2"),
        steps=[
            step(
                "One of two has a priority of its own",
                create(
                    {
                        "apiVersion": "scheduling.k8s.io/v1",
                        "kind": "PriorityClass",
                        "metadata": {"name": "high"},
                        "value": 100,
                    },
                    group(min_count=2),
                    pod("a"),
                    pod("b", priorityClassName="high"),
                ),
                expect=[
                    *(told(name, OF_ONE_PRIORITY) for name in "ab"),
                    condition("reason", "SchedulerError"),
                    condition("message", OF_ONE_PRIORITY),
                    {**bound(0), "always": LONG},
                ],
            ),
            step(
                "Another comes instead",
                {"delete": {"kind": "Pod", "name": "b"}},
                create(pod("c")),
                expect=[bound(2), condition("status", "True")],
            ),
        ],
    ),
}


@by_release(CASES, of_1_36=OF_1_36, of_1_37=OF_1_37)
def test_groups(case: Object, release: str, tmp_path: Path) -> None:
    check(case, release, tmp_path)
