"""Every decision recorded of 1.36.2, compared in every field (the shape is in FORMAT.md).

Where kube-scheduler itself may answer differently from run to run, the recording says so: an answer
is then right if it is one of those that are legitimate.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from berth.insight.offline.explain import explain
from berth.insight.offline.simulate import simulate
from berth.scheduler.config.load import emulating
from berth_plugins.registry import IN_TREE

RECORDED = Path(__file__).parent / "recorded"
FAMILIES = (
    "declaredfeatures",
    "dra",
    "fit",
    "image",
    "interpod",
    "large",
    "mixed",
    "nodeaffinity",
    "ports",
    "preemption",
    "profiles",
    "spread",
    "taints",
    "volumes",
)


class Scenario(msgspec.Struct):
    """What is read of a scenario to name its test."""

    id: str


class Case(msgspec.Struct):
    scenario: Scenario


def cases(*families: str) -> list[Any]:
    """Return the cases as JSON, which each test decodes for itself."""
    found = []
    for family in families:
        lines = gzip.decompress((RECORDED / f"{family}.jsonl.gz").read_bytes()).splitlines()
        for line in lines:
            name = msgspec.json.decode(line, type=Case).scenario.id
            found.append(pytest.param(line, id=name))
    return found


@pytest.mark.parametrize("line", cases(*FAMILIES))
def test_the_decision_is_the_recorded_one(line: bytes) -> None:
    case = json.loads(line)
    expected = dict(case["expected"])
    varying = set(expected.pop("varying", ()))
    expected.pop("nondeterministic", None)
    got = explain(case["scenario"], IN_TREE, adjust=emulating("1.36"))

    if "preemption.nominatedNode" in varying:
        # Of equally good nodes any may be nominated; all that follows is of that node.
        one, others = got["preemption"]["nominatedNode"], expected["preemption"]
        assert one in others["ties"]
        assert got["preemption"]["candidates"] == others["candidates"]
        got["preemption"], varying = others, varying - {"preemption.nominatedNode"}
    for field in varying:
        assert (field in got) == (field in expected)
        got.pop(field, None)
        expected.pop(field, None)
    assert got == expected


@pytest.mark.parametrize("line", cases("sequence"))
def test_the_sequence_is_the_recorded_one(line: bytes) -> None:
    case = json.loads(line)
    got = simulate(case["scenario"], IN_TREE, adjust=emulating("1.36"))
    assert got == case["expected"]
