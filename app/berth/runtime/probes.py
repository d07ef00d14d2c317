"""``/healthz``, ``/livez`` and ``/readyz``, in the format of Kubernetes' servers."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

Check = Callable[[], str]
"""Returns what is wrong, "" if nothing is. Probes are public: the words are for our log only."""

LONGEST_NAME: Final = 100
MOST_NAMES: Final = 10
"""Of checks that were asked for and are not there, what is told back."""


class Report(NamedTuple):
    """The answer of a probe."""

    code: int
    text: str
    results: Mapping[str, str]
    """By check that was made, what is wrong."""


def ping() -> str:
    """Say nothing bad: that somebody answers is what is to be known."""
    return ""


def report(
    probe: str, checks: Mapping[str, Check], *, excluded: Collection[str] = (), verbose: bool
) -> Report:
    """Make the checks of *probe* but those *excluded*; 500 when one fails."""
    lines, results = [], {}
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
            continue
        problem = results[name] = check()
        lines.append(f"[-]{name} failed: reason withheld" if problem else f"[+]{name} ok")
    unknown = sorted(set(excluded) - checks.keys())
    if unknown:
        told = [name[:LONGEST_NAME] for name in unknown[:MOST_NAMES]]
        names = ", ".join(json.dumps(name, ensure_ascii=False) for name in told)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if any(results.values()):
        return Report(500, "\n".join([*lines, f"{probe} check failed", ""]), results)
    text = "\n".join([*lines, f"{probe} check passed", ""]) if verbose else "ok"
    return Report(200, text, results)


def report_one(check: Check) -> Report:
    """Make one check; 500 when it fails."""
    problem = check()
    if problem:
        return Report(500, f"internal server error: {problem}\n", {})
    return Report(200, "ok", {})
