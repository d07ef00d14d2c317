"""Runbook and alerts are about each other; metrics, paths and values that pages name exist."""

import re
from typing import Any

import pytest
import yaml

from berth.service.ui.local_page import MOMENT
from tests.docs.pages import DOCS, ROOT, Page, blocks, pages, slug

ALERTS = ROOT / "helm" / "berth" / "rules" / "alerts.yaml"
VALUES = ROOT / "helm" / "berth" / "values.yaml"
OTHERS = {"config", "leaderElection"}
"""Values whose names are also those of other things on these pages."""
RUNBOOK = Page(DOCS / "operations.md")
COMPATIBILITY = Page(DOCS / "compatibility.md")
WRITTEN = [page for page in pages() if page != COMPATIBILITY]
METRIC = re.compile(r"(?:berth|scheduler|rest_client|process|leader_election)_[a-z_]+")
SERVED = ("/configz", "/debug", "/explain", "/healthz", "/livez", "/metrics", "/readyz", "/sim")


def alerts() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def sections() -> dict[str, str]:
    """Return the sections about alerts, by heading."""
    told = RUNBOOK.text.partition("\n## Alerts\n")[2].partition("\n## ")[0]
    _, *found = re.split(r"^### (\w+)$", told, flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def test_each_alert_has_a_section_and_each_section_an_alert() -> None:
    assert list(sections()) == list(alerts())


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_leads_to_its_section(alert: str) -> None:
    link = alerts()[alert]["annotations"]["runbook_url"]
    assert link.endswith(f"docs/operations.md#{slug(alert)}")


@pytest.mark.parametrize("alert", alerts())
def test_a_section_says_what_it_means_how_to_check_and_what_to_do(alert: str) -> None:
    said = re.findall(r"^\*\*(\w+)\.\*\*", sections()[alert], re.MULTILINE)
    assert said == ["Meaning", "Check", "Fix"]


def compatible() -> set[str]:
    """Return what the list of compatibility names; a test of its own compares it with the code."""
    return set(re.findall(r"^\| `([^`]+)` \|", COMPATIBILITY.text, re.MULTILINE))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_metrics_that_are_named_are_served(page: Page) -> None:
    named = {code.partition("{")[0] for code in page.code()}
    assert {name for name in named if METRIC.fullmatch(name)} <= compatible() | {"berth_plugins"}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_paths_that_are_named_are_served(page: Page) -> None:
    named = {code.partition("?")[0] for code in page.code() if code.startswith(SERVED)}
    paths = {path.replace("{namespace}", "NAMESPACE").replace("{name}", "NAME") for path in named}
    served = {path.replace("{namespace}", "NAMESPACE") for path in (*compatible(), MOMENT)}
    served = {path.replace("{name}", "NAME") for path in served}
    assert {path for path in paths if "*" not in path} <= served


def test_values_of_the_chart_that_are_named_exist() -> None:
    values = yaml.safe_load(VALUES.read_text("utf-8"))
    ours = values.keys() - OTHERS
    named = {
        code
        for page in pages()
        for code in page.code()
        if re.fullmatch(r"[a-z]\w*(\.\w+)+", code) and code.partition(".")[0] in ours
    }
    commands = "\n".join(block.text for block in blocks("console"))
    named |= set(re.findall(r"--set(?:-file)? ([\w.]+)=", commands))
    assert named
    assert [name for name in sorted(named) if not exists(values, name.split("."))] == []


def exists(values: object, steps: list[str]) -> bool:
    for step in steps:
        if not isinstance(values, dict) or step not in values:
            return False
        values = values[step]
    return True
