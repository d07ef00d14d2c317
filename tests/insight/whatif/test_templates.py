"""Pods that are copies of another, and manifests that come as text."""

import pytest

from berth.insight.whatif.manifests import QuestionError
from berth.runtime.errors import UserError
from tests.builders import node, pod
from tests.insight.whatif.asking import ask, deployment, snapshot

ONE = node("one", cpu="2", memory="8Gi")
BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)

# Copies of a pod.


def test_copies_are_like_the_pod_but_wait() -> None:
    model = pod(
        "web", cpu="1", node="one", priority=7, node_selector={"kubernetes.io/hostname": "two"}
    )
    labelled = [node(n, cpu="2", labels={"kubernetes.io/hostname": n}) for n in ("one", "two")]
    found = ask(snapshot(*labelled, model), templates=[{"like": "web", "replicas": 3}])
    assert found.placements == {"default/web-0": "two", "default/web-1": "two"}
    assert [(each.template, each.pods) for each in found.unplaced] == [
        ("Pod default/web", ("default/web-2",))
    ]


def test_a_pod_that_there_is_not_has_no_copies() -> None:
    with pytest.raises(QuestionError, match=r"templates\[0\].like: 'web': there is no such pod"):
        ask(snapshot(ONE), templates=[{"like": "web"}])


def test_copies_are_bounded_with_all_other_pods() -> None:
    other = {"metadata": {"name": "other"}, "spec": {"containers": [{}]}}
    problem = r"templates\[0\].replicas: 20000: must be at most 19999, with the others"
    with pytest.raises(QuestionError, match=problem):
        ask(snapshot(pod("a")), templates=[{"like": "a", "replicas": 20_000}], pods=[other])


# Text.

TEXT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: {template: {spec: {containers: [{name: c}]}}}
---
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
"""


def test_manifests_may_come_as_text() -> None:
    found = ask(snapshot(ONE), templates=[{"text": TEXT, "replicas": 2}])
    assert sorted(found.placements) == ["default/agent-one", "default/web-0", "default/web-1"]
    assert found.notes == ("taken into account: 1 Service",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: [", "templates[0].text: not YAML", id="no YAML"),
        pytest.param(
            "kind: Pod", "templates[0].text, document 1: apiVersion: needed", id="no version"
        ),
        pytest.param(
            TEXT + "---\napiVersion: v1\nkind: Pod\nspec: 7\n",
            "templates[0].text[3]: ",
            id="no spec",
        ),
        pytest.param("[" * 20_000, "templates[0].text: ", id="deep"),
        pytest.param(BOMB, "templates[0].text", id="aliases of aliases"),
    ],
)
def test_text_that_cannot_be_read_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        ask(snapshot(ONE), templates=[{"text": text}])
    assert str(caught.value).startswith(problem)


def test_one_of_three_is_needed() -> None:
    for template in ({}, {"like": "a", "text": "b"}, {"like": "a", "manifest": deployment()}):
        with pytest.raises(ValueError, match="one of manifest, text and like is needed"):
            ask(snapshot(), templates=[template])
