"""What 1.37 decides otherwise than 1.36.2 in the recorded cases, and by which change of behaviour.

``python -m tests.conformance.differences`` writes the table of the documentation.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from berth.insight.offline.explain import explain
from berth.insight.offline.simulate import simulate
from berth.runtime.release import RELEASES, Behaviour
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.config.load import emulating
from berth_plugins.registry import IN_TREE
from docs.generate.releases import DIFFERENCES, behaviours, section_key
from tests.conformance.test_recorded import FAMILIES, cases

Reason: TypeAlias = Behaviour | str
"""A change of behaviour, or the name of a feature gate that is on by default."""

GATES: Final[Mapping[str, str]] = {
    "StorageCapacityScoring": "N3.5",
    "VolumeLimitScaling": "N3.6",
    "DRADeviceTaintRules": "N4.1",
}
"""The gates that a scheduler of 1.37 has on and one of 1.36 has not, with their sections."""


@contextmanager
def without(*reasons: Reason) -> Iterator[None]:
    """Let no scheduler that is made have *reasons*, whatever its release."""
    contains = Features.__contains__
    with patch.object(
        Features, "__contains__", lambda self, item: item not in reasons and contains(self, item)
    ):
        yield


def answer(scenario: Mapping[str, Any], release: str) -> dict[str, Any]:
    """Return what is decided for *scenario*, as the recordings write it."""
    decide = simulate if "pods" in scenario else explain
    return decide(scenario, IN_TREE, adjust=emulating(release))


def reasons_of(case: Mapping[str, Any], known: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return the fewest changes without which 1.37 decides as 1.36; none if it does anyway.

    Of as few, those that come first in *known*.
    """
    scenario = case["scenario"]
    recorded = {key: value for key, value in case["expected"].items() if key != "nondeterministic"}
    now = answer(scenario, RELEASES[-1])
    if now == recorded:  # which is what 1.36 decides, as test_recorded says
        return ()
    before = answer(scenario, RELEASES[0])
    if now == before:
        return ()
    for number in range(1, 4):
        for reasons in combinations(known, number):
            with without(*reasons):
                if answer(scenario, RELEASES[-1]) == before:
                    return reasons
    raise AssertionError(f"{scenario.get('id')}: no change explains the difference")


def differences() -> dict[str, Any]:
    """Return how many cases there are and, by section, how many differ, and the first of them."""
    known: list[Reason] = [*behaviours(), *GATES]
    by_section: dict[str, list[str]] = {}
    recorded = [json.loads(case.values[0]) for case in cases(*FAMILIES, "sequence")]
    for case in recorded:
        for reason in reasons_of(case, known):
            known.remove(reason)
            known.insert(0, reason)  # it often explains the next difference, too
            section = GATES[reason] if isinstance(reason, str) else reason.section
            by_section.setdefault(section, []).append(case["scenario"]["id"])
    return {
        "total": len(recorded),
        "sections": [
            {"section": section, "cases": len(found), "example": found[0]}
            for section, found in sorted(by_section.items(), key=lambda row: section_key(row[0]))
        ],
    }


if __name__ == "__main__":
    DIFFERENCES.write_text(json.dumps(differences(), indent=1) + "\n", encoding="utf-8")
