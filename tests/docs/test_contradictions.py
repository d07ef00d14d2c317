"""No page says that something is missing which the code has.

Features are what code and reference list: gates that can be turned, commands, kinds of the embedded
cluster; with the words that people use for them. They are looked for right behind words that deny,
or before them. What denies in other words is not found.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from berth import cli
from berth.scheduler.config.feature_gates import TURNABLE
from tests.docs.pages import DOCS, Page, pages

WORDS: Final[Mapping[str, str]] = {
    "GenericWorkload": r"pod ?groups|groups of pods|workloads? APIs?",
    "GangScheduling": r"gangs|gang scheduling",
    "TopologyAwareWorkloadScheduling": r"topology[- ]aware (?:workload )?scheduling",
    "WorkloadAwarePreemption": r"preemption (?:by|for|of) (?:pod )?groups",
    "DRAPartitionableDevices": r"partitionable devices|shared counters",
    "DRADeviceTaints": r"device taints|taints of devices",
    "DRAConsumableCapacity": r"consumable capacity",
    "DRAExtendedResource": r"extended resources by devices",
    "PodLevelResources": r"pod[- ]level resources|resources at pod level",
}
"""What people call a feature, beside the name of its gate."""

UNGATED: Final = (
    r"preemption|leader election|dynamic resource allocation|extenders|queueing hints"
    r"|server-side apply|custom resources|admission policies|webhooks|quotas"
    r"|recordings|what-if questions|explanations|shell completion"
)
"""What has no gate."""

DENIES: Final = (
    r"(?:\bthere (?:is|are) no|\bha(?:s|ve) no|\b(?:no|without) support for|\black(?:s|ing)?"
    r"|\b(?:does|do|can) ?not (?:have|know|support|serve|offer))\s+(?:the |any |yet )?"
)
"""Before the name."""
DENIED: Final = (
    r"\s+(?:is|are) (?:missing|absent|unsupported"
    r"|not (?:yet )?(?:supported|implemented|available|served|there))\b"
)
"""Behind the name."""


def names() -> Iterator[str]:
    """Yield a pattern for each name of a feature."""
    yield from (rf"`?{gate}`?" for gate in sorted(TURNABLE))
    yield from (f"(?:{words})" for gate, words in WORDS.items() if gate in TURNABLE)
    yield f"(?:{UNGATED})"
    yield from (f"`berth {command}`" for command in cli.COMMANDS)
    kinds = re.findall(
        r"^\| `(\w+)` \|", (DOCS / "reference/embedded-api.md").read_text("utf-8"), re.MULTILINE
    )
    yield from (rf"`{kind}`(?:s| objects)?" for kind in kinds)


NAMES: Final = "|".join(names())
CONTRADICTION: Final = re.compile(
    rf"{DENIES}(?:{NAMES})(?![\w-])|(?<![\w-])(?:{NAMES}){DENIED}", re.IGNORECASE
)


def contradictions(prose: str) -> list[str]:
    """Return what *prose* denies and berth has."""
    return [match[0] for match in CONTRADICTION.finditer(re.sub(r"[ \n]+", " ", prose))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_page_denies_what_berth_has(page: Page) -> None:
    assert contradictions(page.prose) == []


@pytest.mark.parametrize(
    ("prose", "denied"),
    [
        pytest.param("There are no pod groups.", ["There are no pod groups"], id="groups"),
        pytest.param(
            "berth does not\nsupport the `GenericWorkload` gate.",
            ["does not support the `GenericWorkload`"],
            id="a gate, over two lines",
        ),
        pytest.param("`berth lab` is not available.", ["`berth lab` is not available"], id="lab"),
        pytest.param(
            "| `ConfigMap` objects are not served |",
            ["`ConfigMap` objects are not served"],
            id="a kind, in a table",
        ),
        pytest.param("Preemption is not yet implemented.", ["Preemption is not yet implemented"],
                     id="a feature without a gate"),
        pytest.param("There are no pods, and gangs start together.", [], id="something else"),
        pytest.param("There are no preemption-free days.", [], id="a longer word"),
        pytest.param("A cluster has no Kubelet.", [], id="what berth has not"),
    ],
)  # fmt: skip
def test_what_is_found(prose: str, denied: list[str]) -> None:
    assert contradictions(prose) == denied


def test_every_gate_with_words_can_be_turned() -> None:
    assert WORDS.keys() <= TURNABLE
