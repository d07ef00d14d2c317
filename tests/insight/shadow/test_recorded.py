"""Every recorded decision of kube-scheduler, told as watches would tell it.

Where several nodes are best, kube-scheduler takes any of them.
"""

import json
from typing import Any

import msgspec
import pytest

from berth.insight.explain.comparison import Agreement
from berth.insight.offline.scenario import objects_of, read
from berth.insight.shadow.comparisons import Shadowed
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from tests.conformance.test_recorded import FAMILIES, cases
from tests.insight.shadow.watching import Told

QUICK = ("fit", "spread", "taints")
"""The other families are tried with the slow tests."""
SHARE = 3
"""One case in so many of each family is tried there; all of them take half a minute."""
replace = msgspec.structs.replace


@pytest.mark.parametrize("line", cases(*QUICK)[::10])
async def test_it_agrees_with_a_recorded_decision(line: bytes) -> None:
    await check(line)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
async def test_it_agrees_with_recorded_decisions_of_each_family(family: str) -> None:
    for case in cases(family)[::SHARE]:
        await check(*case.values)


async def check(line: bytes) -> None:
    case = json.loads(line)
    scenario, expected = case["scenario"], case["expected"]
    if "nodeName" in scenario["features"]:
        return  # no pod that has a node already is placed by a scheduler
    best = expected["best"]
    if expected.get("nominatedUsed"):
        best = [scenario["pod"]["status"]["nominatedNodeName"]]
    chosen = best[len(best) // 2] if best else ""
    found = await shadowed(scenario, chosen, expected["fitError"])
    if expected.get("error"):
        assert found.result is Agreement.FAILED, found.words
        return
    assert found.result is wanted(best, chosen), (scenario["id"], found.words)
    assert found.same_reasons is (None if chosen else True), (scenario["id"], found.words)


def wanted(best: list[str], chosen: str) -> Agreement:
    if not chosen:
        return Agreement.NOWHERE
    return Agreement.TIE if len(best) > 1 else Agreement.AGREED


async def shadowed(scenario: dict[str, Any], chosen: str, message: str) -> Shadowed:
    """Tell a shadow of the objects, then of the pod, then of what became of it."""
    pod: Pod = read(scenario["pod"], Pod)
    told = Told(config=scenario.get("config"))
    for obj in (*objects_of(scenario["objects"]), pod):
        if not (isinstance(obj, Pod) and obj.is_terminated):  # the watch leaves them out
            told.come(obj)
    condition = Condition(
        type="PodScheduled", status="False", reason="Unschedulable", message=message
    )
    failed = replace(pod, status=replace(pod.status, conditions=(condition,)))
    async with told.running():
        told.change(pod, pod.assigned_to(chosen) if chosen else failed)
        await told.until_looked_at()
    (found,) = told.found()
    return found
