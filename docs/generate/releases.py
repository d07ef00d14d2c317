"""``docs/reference/releases.md``: what a release of Kubernetes changes in the scheduler."""

import json
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import berth
import berth_plugins
from berth.runtime.release import RELEASE, RELEASES, Behaviour
from berth.scheduler.config.feature_gates import CONSULTED, OWN, TURNABLE
from berth.scheduler.config.kube_features import FEATURE_GATES, Gate
from docs.generate import markdown

DIFFERENCES: Final = Path(__file__).parent / "differences.json"

INTRODUCTION = f"""\
`--emulated-version` and the field `emulatedVersion` of the configuration choose the release of
Kubernetes that a scheduler, or a tool that decides, is like: {" or ".join(RELEASES)}; {RELEASE} by
default. 1.36 is 1.36.2 in everything that can be observed. kube-scheduler's own flag returns to an
earlier release's feature gates, and keeps all other changes.
[What an upgrade changes](../upgrade.md) shows how to try a release on your own pods."""
BEHAVIOURS = """\
No feature gate controls these. They follow the emulated release."""
GATES = """\
These are the gates that the scheduler consults and that the later release has otherwise.
`--feature-gates` can set those that are not locked."""
RECORDED = """\
{total} decisions were recorded from kube-scheduler 1.36.2. berth makes all of them in every field
when it emulates 1.36. When it emulates {release}, it makes these otherwise, and each of them as
before without the change of its section:"""
_STAGES: Final = {"ALPHA": "alpha", "BETA": "beta", "": "GA"}


def page() -> str:
    return markdown.page(
        "Releases of Kubernetes",
        INTRODUCTION,
        "## Changes of behavior",
        BEHAVIOURS,
        markdown.table(
            ("Since", "Section", "Change"),
            [(each.since, each.section, markdown.plain(each.text)) for each in behaviours()],
        ),
        "## Feature gates",
        GATES,
        markdown.table(("Gate", *RELEASES), _gates()),
        "## Recorded decisions",
        *_recorded(json.loads(DIFFERENCES.read_text(encoding="utf-8"))),
        source="the behaviors that the scheduler and the plugins declare",
    )


def behaviours() -> list[Behaviour]:
    """Return all behaviors that the scheduler and the plugins declare, by section."""
    declared = {
        value
        for package in (berth, berth_plugins)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if module.name.startswith(("berth.scheduler.", "berth_plugins."))
        for value in vars(import_module(module.name)).values()
        if isinstance(value, Behaviour)
    }
    return sorted(declared, key=lambda change: (section_key(change.section), change.text))


def section_key(section: str) -> tuple[int, ...]:
    """Return what sorts sections such as N3.10 as numbers."""
    return tuple(map(int, section.removeprefix("N").split(".")))


def _gates() -> list[tuple[str, ...]]:
    first, last = FEATURE_GATES[RELEASES[0]], FEATURE_GATES[RELEASES[-1]]
    names = sorted((CONSULTED | TURNABLE) - OWN.keys())
    return [
        (markdown.code(name), _gate(first.get(name)), _gate(last.get(name)))
        for name in names
        if first.get(name) != last.get(name)
    ]


def _gate(gate: Gate | None) -> str:
    if gate is None:
        return "-"
    locked = ", locked" if gate.locked else ""
    return f"{_STAGES[gate.stage]}, {'on' if gate.enabled else 'off'}{locked}"


def _recorded(found: dict[str, Any]) -> tuple[str, str]:
    return (
        RECORDED.format(total=found["total"], release=RELEASES[-1]),
        markdown.table(
            ("Section", "Cases", "Example"),
            [(row["section"], str(row["cases"]), row["example"]) for row in found["sections"]],
        ),
    )
