"""What one rule allows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rules import Rule, on, on_paths

BIND = Attributes("create", resource="pods", subresource="binding", namespace="web", name="p")
LIST = Attributes("list", resource="pods", namespace="web")
GET = Attributes("get", resource="pods", namespace="web", name="p")
SCALE = Attributes("update", "apps", "deployments", "scale", "web", "d")
METRICS = Attributes("get", path="/metrics")


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        pytest.param(on("pods", "get list"), {"LIST", "GET"}, id="a resource, without the rest"),
        pytest.param(on("pods", "get"), {"GET"}, id="one verb"),
        pytest.param(on("pods/binding", "create"), {"BIND"}, id="a subresource"),
        pytest.param(on("pods", "create"), set(), id="the resource is not its subresource"),
        pytest.param(on("pods/binding", "*"), {"BIND"}, id="nor the other way round"),
        pytest.param(on("pods", "*"), {"LIST", "GET"}, id="all verbs"),
        pytest.param(on("*", "*"), {"BIND", "LIST", "GET"}, id="all of a group, below it too"),
        pytest.param(on("*/scale", "update", groups="*"), {"SCALE"}, id="scale of everything"),
        pytest.param(on("*/scale", "*"), set(), id="scale of everything in another group"),
        pytest.param(on("deployments/*", "*", groups="apps"), set(), id="no such wildcard"),
        pytest.param(on("deployments/scale", "update", groups="apps"), {"SCALE"}, id="a group"),
        pytest.param(on("deployments/scale", "update"), set(), id="another group"),
        pytest.param(on("pods", "get list", names=["p"]), {"GET"}, id="a name: no list"),
        pytest.param(on("pods", "get", names=["q"]), set(), id="another name"),
        pytest.param(on_paths("/metrics", "get"), {"METRICS"}, id="a path"),
        pytest.param(on_paths("/met*", "get"), {"METRICS"}, id="the beginning of a path"),
        pytest.param(on_paths("*", "*"), {"METRICS"}, id="all paths, but no resource"),
        pytest.param(on_paths("/metric", "get"), set(), id="another path"),
        pytest.param(on_paths("/*/metrics", "get"), set(), id="a star counts at the end only"),
        pytest.param(on("*", "*", groups="*"), {"BIND", "LIST", "GET", "SCALE"}, id="no paths"),
        pytest.param(Rule(), set(), id="nothing"),
    ],
)
def test_allows(rule: Rule, allowed: set[str]) -> None:
    wanted = {"BIND": BIND, "LIST": LIST, "GET": GET, "SCALE": SCALE, "METRICS": METRICS}
    assert {name for name, each in wanted.items() if rule.allows(each)} == allowed


def test_as_object() -> None:
    assert on("pods pods/log", "get", groups="core apps", names=["p"]).as_object() == {
        "verbs": ["get"],
        "apiGroups": ["", "apps"],
        "resources": ["pods", "pods/log"],
        "resourceNames": ["p"],
    }
    assert on_paths("/a", "get").as_object() == {"verbs": ["get"], "nonResourceURLs": ["/a"]}


def some(words: str) -> Any:
    return st.lists(st.sampled_from(words.split()), max_size=3).map(tuple)


RULES = st.builds(
    Rule,
    verbs=some("get list create *"),
    api_groups=st.lists(st.sampled_from(["", "apps", "*"]), max_size=2).map(tuple),
    resources=some("pods pods/binding */binding *"),
    resource_names=some("p q"),
    non_resource_urls=some("/metrics /m* *"),
)
WANTED = st.one_of(
    st.builds(
        Attributes,
        verb=st.sampled_from(["get", "list", "create"]),
        group=st.sampled_from(["", "apps"]),
        resource=st.sampled_from(["pods", "nodes"]),
        subresource=st.sampled_from(["", "binding"]),
        name=st.sampled_from(["", "p"]),
    ),
    st.builds(Attributes, verb=st.just("get"), path=st.sampled_from(["/metrics", "/x"])),
)


@given(RULES, WANTED)
def test_a_rule_follows_the_definition(rule: Rule, wanted: Attributes) -> None:
    """Verb, and either group, resource and name, or path."""
    full, sub = wanted.full_resource, f"*/{wanted.subresource}" if wanted.subresource else "*"
    by_resource = (
        bool({wanted.group, "*"} & {*rule.api_groups})
        and bool({full, sub, "*"} & {*rule.resources})
        and (not rule.resource_names or wanted.name in rule.resource_names)
    )
    by_path = any(
        wanted.path == url or (url[-1] == "*" and wanted.path.startswith(url[:-1]))
        for url in rule.non_resource_urls
    )
    verb = bool({wanted.verb, "*"} & {*rule.verbs})
    assert rule.allows(wanted) == (verb and (by_resource if wanted.resource else by_path))
