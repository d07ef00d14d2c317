"""The chart grants what a declared kind needs to be watched."""

import pytest

from berth.framework.listers import KINDS
from tests.helm.cases import of_mode
from tests.helm.rendering import of_kind, render


@pytest.mark.parametrize("mode", ["scheduler", "extender", "simulator"])
def test_every_kind_may_be_listed_and_watched(mode: str) -> None:
    rules = [
        rule for role in of_kind(render(of_mode(mode)), "ClusterRole") for rule in role["rules"]
    ]
    watched = {
        (group, resource)
        for rule in rules
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
    }
    assert {(kind.group, kind.resource) for kind in KINDS.values()} <= watched
