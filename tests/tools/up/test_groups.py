"""Groups of pods from their first manifest to the last bind, on an embedded cluster (spec G19).

Each scenario runs the API server, the controllers, the scheduler and hollow nodes on a clock that
does not wait.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.tools.up.group_scenarios import (
    LONG,
    TOPOLOGY,
    Object,
    bound,
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

HELD: Final = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more"
    " plugins asked to wait and no plugin rejected pod"
)
DIFFERENT: Final = "all pods in a single pod group should have the same .spec.schedulerName set"
RACKS: Final = (nodes("a-", 2, "2", rack="a"), nodes("b-", 3, "2", rack="b"))


def on_rack(rack: str, count: int) -> Object:
    return bound(count, nodeSelector=f"rack={rack}")


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
    "3 and 4, a gang without room waits whole, and starts whole on a new node": scenario(
        nodes("n", 1, "2"),
        steps=[
            step(
                "Three pods, room for two",
                create(group(min_count=3), *pods("a", "b", "c")),
                expect=[
                    {"pods": {"message": HELD, "count": 2}},
                    {"pods": {"message": "1 Insufficient cpu", "count": 1}},
                    condition("status", "False"),
                    condition("reason", "Unschedulable"),
                    condition("message", "pod group is unschedulable"),
                    {**bound(0), "always": LONG},
                    {"objects": {"kind": "Pod", "path": ".status.nominatedNodeName", "count": 0}},
                ],
            ),
            step(
                "Another node",
                {"addNodes": nodes("m", 1, "2")},
                expect=[bound(3), condition("status", "True")],
            ),
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
    "7, pods of different schedulers are no group": scenario(
        nodes("n", 1, "4"),
        profiles=[{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}],
        steps=[
            step(
                "One names another scheduler",
                create(group(min_count=2), pod("a"), pod("b", schedulerName="other")),
                expect=[
                    told("a", DIFFERENT),
                    told("b", DIFFERENT),
                    {"objects": {"kind": "PodGroup", "path": ".status.conditions", "count": 0}},
                    {**bound(0), "always": LONG},
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
    "15, no rack has room": scenario(
        nodes("a", 2, "1", rack="a"),
        nodes("b", 2, "1", rack="b"),
        gates=TOPOLOGY,
        steps=[
            step(
                "Three pods, two CPUs on each rack",
                create(group(min_count=3, topology="rack"), *pods("a", "b", "c")),
                expect=[
                    condition(
                        "message",
                        "0/2 placements are available, first placement status:"
                        " pod group is unschedulable",
                    ),
                    {**bound(0), "always": LONG},
                ],
            )
        ],
    ),
    "16, no node has the label": scenario(
        nodes("n", 2, "2"),
        gates=TOPOLOGY,
        steps=[
            step(
                "A constraint on racks",
                create(group(min_count=2, topology="rack"), *pods("a", "b")),
                expect=[
                    told("a", "no feasible placements found"),
                    told("b", "no feasible placements found"),
                    condition("message", "no feasible placements found"),
                ],
            )
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_groups(case: Object, tmp_path: Path) -> None:
    check(case, tmp_path)
