"""docs/rule-index.md: every row leads to a section of the rules, to a function and to its tests."""

import re
from functools import reduce
from importlib import import_module
from typing import NamedTuple

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.docs.test_specification import sections


class Rule(NamedTuple):
    theirs: str
    section: str
    ours: str
    test: str


def rules() -> list[Rule]:
    text = (DOCS / "rule-index.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| `(berth[\w.:]+)` \| `(tests/[\w/.]+)` \|$", text, re.MULTILINE
    )
    return [Rule(theirs.strip("`"), *rest) for theirs, *rest in rows]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.theirs)
def test_a_rule_leads_to_code(rule: Rule) -> None:
    module, _, name = rule.ours.partition(":")

    assert reduce(getattr, filter(None, name.split(".")), import_module(module)) is not None


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.theirs)
def test_a_rule_leads_to_tests(rule: Rule) -> None:
    text = (ROOT / rule.test).read_text("utf-8")

    assert "def test_" in text or ".TestCase" in text


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.theirs)
def test_a_rule_leads_to_a_section_of_the_specification(rule: Rule) -> None:
    links = re.findall(r"\[([\d.]+)\]\(specification\.md#[\w-]+\)", rule.section)

    assert links
    assert sections().issuperset(links)


def test_every_row_is_a_rule_and_no_rule_is_listed_twice() -> None:
    text = (DOCS / "rule-index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `", text, re.MULTILINE)
    found = rules()

    assert len(found) == len(rows) >= 60
    assert len({rule.theirs for rule in found}) == len(found)
