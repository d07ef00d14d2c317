"""Groups of groups on an embedded cluster, from manifests to bound pods (1.37 spec N11)."""

from pathlib import Path
from typing import Final

import pytest

from tests.tools.up.group_scenarios import (
    LONG,
    TOPOLOGY,
    Cases,
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

GATES: Final = (*TOPOLOGY[:1], *TOPOLOGY[2:], "CompositePodGroup")
NO_VICTIMS: Final = "pod group preemption: No preemption victims found for incoming preemptor"
WORKLOAD: Final[Object] = {"workloadName": "w", "templateName": "t"}
RACKS: Final = tuple(
    nodes(f"{zone}{rack}-", 2, "1", zone=zone, rack=f"{zone}{rack}")
    for zone in "ab"
    for rack in "12"
)


def composite(
    name: str = "root", *, min_count: int | None = None, topology: str = "", **spec: object
) -> Object:
    """Make a group of groups; without *min_count* the policy is ``basic``."""
    gang = {"basic": {}} if min_count is None else {"gang": {"minGroupCount": min_count}}
    more: Object = {"schedulingPolicy": gang, "workloadRef": WORKLOAD, **spec}
    if topology:
        more["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name},
        "spec": more,
    }


def child(name: str, parent: str = "root", *, min_count: int | None = None, **more: str) -> Object:
    of_pods = group(name, min_count=min_count, topology=more.pop("topology", ""))
    spec = {"parentCompositePodGroupName": parent, "workloadRef": WORKLOAD, **more}
    return {**of_pods, "spec": of_pods["spec"] | spec}


CASES: Final[Cases] = {
    "a gang of two gangs without room waits whole, and starts whole on a new node": scenario(
        nodes("n", 1, "3"),
        gates=GATES,
        steps=[
            step(
                "Two groups of two, room for three pods",
                create(composite(min_count=2), child("g", min_count=2), child("h", min_count=2)),
                create(*pods("g1", "g2", of="g"), *pods("h1", "h2", of="h")),
                expect=[
                    condition("status", "False", "g"),
                    condition("status", "False", "h"),
                    {**bound(0, "g"), "always": LONG},
                    {**bound(0, "h"), "always": LONG},
                    {
                        "objects": {
                            "kind": "CompositePodGroup",
                            "path": ".status.conditions",
                            "count": 0,
                        }
                    },
                ],
            ),
            step(
                "Another node",
                {"addNodes": nodes("m", 1, "1")},
                expect=[
                    bound(2, "g"),
                    bound(2, "h"),
                    condition("status", "True", "g"),
                    condition("status", "True", "h"),
                ],
            ),
        ],
    ),
    "groups wait for their parents, and for each other": scenario(
        nodes("n", 1, "4"),
        gates=GATES,
        steps=[
            step(
                "Only one group is ready, and its parent is unknown",
                create(child("g", "mid", min_count=1), *pods("g1", of="g")),
                expect=[{**bound(0, "g"), "always": LONG}, never("FailedScheduling")],
            ),
            step(
                "The tree is there, and another group of it has too few pods",
                create(composite(min_count=2)),
                create(composite("mid", parentCompositePodGroupName="root")),
                create(child("h", min_count=2), *pods("h1", of="h")),
                expect=[{**bound(0, "g"), "always": LONG}],
            ),
            step("The last pod", create(pod("h2", of="h")), expect=[bound(1, "g"), bound(2, "h")]),
        ],
    ),
    "a zone for all, and a rack for each group": scenario(
        *RACKS,
        gates=GATES,
        objects=[pod("x", of="", nodeSelector={"rack": "a1"})],
        steps=[
            step(
                "One rack of the first zone is not free",
                create(composite(min_count=2, topology="zone")),
                create(child("g", min_count=2, topology="rack")),
                create(child("h", min_count=2, topology="rack")),
                create(*pods("g1", "g2", of="g"), *pods("h1", "h2", of="h")),
                expect=[
                    bound(2, "g", nodeSelector="zone=b"),
                    bound(2, "h", nodeSelector="zone=b"),
                ],
            ),
        ],
    ),
    "all groups of a tree take the room of pods of lower priority": scenario(
        nodes("n", 2, "1"),
        gates=GATES,
        objects=[pod("x", of=""), pod("y", of="")],
        steps=[
            step("They run", expect=[bound(2, "none")]),
            step(
                "A tree of higher priority",
                create(
                    {
                        "apiVersion": "scheduling.k8s.io/v1",
                        "kind": "PriorityClass",
                        "metadata": {"name": "high"},
                        "value": 100,
                    }
                ),
                create(composite(min_count=2, priorityClassName="high")),
                create(child("g", min_count=1), child("h", min_count=1)),
                create(pod("g1", of="g", priorityClassName="high")),
                create(pod("h1", of="h", priorityClassName="high")),
                expect=[
                    bound(1, "g"),
                    bound(1, "h"),
                    bound(0, "none"),
                    {"event": {"reason": "Preempted"}},
                ],
            ),
        ],
    ),
    "of two groups the one that is enough starts, and the other is told": scenario(
        nodes("n", 1, "2"),
        gates=GATES,
        steps=[
            step(
                "One of two is enough",
                create(composite(min_count=1), child("g", min_count=3), child("h", min_count=2)),
                create(*pods("g1", "g2", "g3", of="g"), *pods("h1", "h2", of="h")),
                expect=[
                    bound(2, "h"),
                    condition("status", "True", "h"),
                    condition("status", "False", "g"),
                    told("g1", "Insufficient cpu"),
                    {**bound(0, "g"), "always": LONG},
                ],
            ),
            step("Room for the other", {"addNodes": nodes("m", 3, "1")}, expect=[bound(3, "g")]),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_composite_groups(case: Object, tmp_path: Path) -> None:
    check(case, "1.37", tmp_path)
