"""Every recorded decision, compared in every field but what preemption adds.

A case that berth cannot judge yet is answered ``unsupported``; families that are whole must have
none, the others say how many they have.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from app.offline.explain import explain
from plugins.registry import IN_TREE

RECORDED = Path(__file__).parent / "recorded"
WHOLE = ("fit", "image", "nodeaffinity", "ports", "taints")
PARTIAL = ("declaredfeatures", "interpod", "large", "mixed", "preemption", "profiles", "spread")


def cases(family: str) -> list[dict[str, Any]]:
    with gzip.open(RECORDED / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def without_preemption(expected: dict[str, Any]) -> dict[str, Any]:
    """Leave out what DefaultPreemption and DynamicResources say, which are not there yet."""
    left_out = {"preemption", "nondeterministic", "varying"}
    wanted = {key: value for key, value in expected.items() if key not in left_out}
    message = (expected["preemption"] or {}).get("message", "")
    if message:
        wanted["fitError"] = wanted["fitError"].removesuffix(f" {message}")
    for scores in wanted["scores"].values():
        scores["plugins"].pop("DynamicResources", None)
    return wanted


def all_of(families: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(case, id=case["scenario"]["id"])
        for family in families
        for case in cases(family)
    ]


@pytest.mark.parametrize("case", all_of(WHOLE))
def test_the_decision_is_the_recorded_one(case: dict[str, Any]) -> None:
    assert explain(case["scenario"], IN_TREE) == without_preemption(case["expected"])


@pytest.mark.parametrize("case", all_of(PARTIAL))
def test_what_can_be_judged_is_judged_rightly(case: dict[str, Any]) -> None:
    got = explain(case["scenario"], IN_TREE)
    if "unsupported" in got:
        assert got.keys() == {"id", "unsupported"}
        return

    assert got == without_preemption(case["expected"])
