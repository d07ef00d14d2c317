"""The chart grants what a declared kind needs to be watched."""

import pytest

from berth.insight.whatif import admission
from berth.scheduler.framework.listers import KINDS
from berth.tools.up.access_rights import LISTED
from tests.helm.cases import of_mode
from tests.helm.rendering import of_kind, render

MODES = ["scheduler", "extender", "simulator"]


@pytest.mark.parametrize("mode", MODES)
def test_every_kind_may_be_listed_and_watched(mode: str) -> None:
    watched = allowed(mode, {"list", "watch"})
    assert {(kind.group, kind.resource) for kind in KINDS.values()} <= watched


@pytest.mark.parametrize("mode", MODES)
def test_what_is_asked_for_explanations_may_be_listed(mode: str) -> None:
    asked = {(group, resource) for group, resources in LISTED for resource in resources}
    assert {(kind.group, kind.resource) for kind in admission.KINDS.values()} <= asked
    assert asked <= allowed(mode, {"list"})


def allowed(mode: str, verbs: set[str]) -> set[tuple[str, str]]:
    """Return what a release may do all of *verbs* to, as groups and resources."""
    roles = of_kind(render(of_mode(mode)), "ClusterRole")
    return {
        (group, resource)
        for role in roles
        for rule in role["rules"]
        if verbs <= set(rule["verbs"])
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
    }
