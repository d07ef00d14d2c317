"""InterPodAffinity: which events are worth another try (spec §3.9)."""

import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Affinity, Pod, PodAffinityTerm
from berth.scheduler.framework.events import ActionType, EventResource, QueueingHint
from berth_plugins.inter_pod_affinity.plugin import after_node_change
from tests.builders import (
    ZONE,
    expression,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
)
from tests.plugins.evaluating import hint_about_pod
from tests.plugins.inter_pod_affinity.affinity_evaluating import plugin

WEB, DB, BOTH = {"app": "web"}, {"tier": "db"}, {"app": "web", "tier": "db"}
LIKES_BOTH = pod_affinity(required=[pod_term(WEB), pod_term(DB)])
AVOIDS_BOTH = pod_anti_affinity(required=[pod_term(WEB), pod_term(DB)])
PLACED = "n1"


def test_what_it_listens_to() -> None:
    on_pod = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
    registered = [(r.event.resource, r.event.action) for r in plugin().events_to_register()]
    assert registered == [
        (EventResource.POD, on_pod),
        (EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
    ]


@pytest.mark.parametrize(
    ("waiting", "old", "new", "want"),
    [
        pytest.param(
            LIKES_BOTH,
            None,
            pod(labels=BOTH, node=PLACED),
            QueueingHint.QUEUE,
            id="added: matches all",
        ),
        pytest.param(
            LIKES_BOTH,
            None,
            pod(labels=BOTH, nominated="n1"),
            QueueingHint.QUEUE,
            id="added: nominated",
        ),
        pytest.param(
            LIKES_BOTH, None, pod(labels=BOTH), QueueingHint.SKIP, id="added: without a place"
        ),
        pytest.param(
            LIKES_BOTH,
            None,
            pod(labels=WEB, node=PLACED),
            QueueingHint.SKIP,
            id="added: matches some",
        ),
        pytest.param(
            None, None, pod(labels=WEB, node=PLACED), QueueingHint.SKIP, id="added: no terms at all"
        ),
        pytest.param(
            LIKES_BOTH,
            pod(labels=WEB, node=PLACED),
            pod(labels=BOTH, node=PLACED),
            QueueingHint.QUEUE,
            id="updated: matches all now",
        ),
        pytest.param(
            LIKES_BOTH,
            pod(labels=BOTH, node=PLACED),
            pod(labels={**BOTH, "x": "y"}, node=PLACED),
            QueueingHint.SKIP,
            id="updated: matched all before",
        ),
        pytest.param(
            AVOIDS_BOTH,
            pod(labels=BOTH, node=PLACED),
            pod(node=PLACED),
            QueueingHint.QUEUE,
            id="updated: out of the way",
        ),
        pytest.param(
            AVOIDS_BOTH,
            pod(labels=BOTH, node=PLACED),
            None,
            QueueingHint.QUEUE,
            id="deleted: in the way",
        ),
        pytest.param(
            AVOIDS_BOTH, pod(labels=BOTH), None, QueueingHint.SKIP, id="deleted: had no place"
        ),
        pytest.param(
            LIKES_BOTH,
            pod(labels=BOTH, node=PLACED),
            None,
            QueueingHint.SKIP,
            id="deleted: was liked",
        ),
        pytest.param(
            None,
            pod(node=PLACED, affinity=pod_anti_affinity(required=[pod_term({"is": "waiting"})])),
            None,
            QueueingHint.QUEUE,
            id="deleted: it kept the pod away",
        ),
        pytest.param(None, pod(node=PLACED), None, QueueingHint.SKIP, id="deleted: of no concern"),
    ],
)
def test_after_pod_change(
    waiting: Affinity | None, old: Pod | None, new: Pod | None, want: QueueingHint
) -> None:
    a_pod = pod("waiting", labels={"is": "waiting"}, affinity=waiting)
    assert hint_about_pod(plugin(), a_pod, old, new) is want


@pytest.mark.parametrize(
    ("waiting", "old", "new", "before", "now"),
    [
        pytest.param(
            AVOIDS_BOTH, pod(labels=WEB, node=PLACED), None, QueueingHint.SKIP, QueueingHint.QUEUE,
            id="deleted: matched one of two",
        ),
        pytest.param(
            AVOIDS_BOTH, pod(labels=BOTH, node=PLACED), None, QueueingHint.QUEUE,
            QueueingHint.QUEUE,
            id="deleted: matched both",
        ),
        pytest.param(
            AVOIDS_BOTH, pod(labels={"x": "y"}, node=PLACED), None, QueueingHint.SKIP,
            QueueingHint.SKIP,
            id="deleted: matched neither",
        ),
        pytest.param(
            None,
            pod(
                node=PLACED,
                affinity=pod_anti_affinity(required=[pod_term({"is": "waiting"}), pod_term(WEB)]),
            ),
            None, QueueingHint.SKIP, QueueingHint.QUEUE,
            id="deleted: one of its two terms is about the pod",
        ),
        pytest.param(
            AVOIDS_BOTH, pod(labels=WEB, node=PLACED), pod(node=PLACED), QueueingHint.SKIP,
            QueueingHint.QUEUE,
            id="updated: matched one of two, and does no more",
        ),
        pytest.param(
            AVOIDS_BOTH, pod(labels=BOTH, node=PLACED), pod(labels=WEB, node=PLACED),
            QueueingHint.QUEUE, QueueingHint.SKIP,
            id="updated: matched both, and still one",
        ),
    ],
)  # fmt: skip
def test_anti_affinity_to_several(
    waiting: Affinity | None, old: Pod, new: Pod | None, before: QueueingHint, now: QueueingHint
) -> None:
    """1.37 spec N3.10; the hint is asked through its indexes."""
    a_pod = pod("waiting", labels={"is": "waiting"}, affinity=waiting)
    assert hint_about_pod(plugin(release="1.36"), a_pod, old, new) is before
    assert hint_about_pod(plugin(), a_pod, old, new) is now


def test_a_change_of_the_pod_itself() -> None:
    before, after = pod("waiting"), pod("waiting", labels=WEB, version="2")
    assert plugin().after_pod_change(before, before, after) is QueueingHint.QUEUE


OF_TEAM = [pod_term(WEB, namespace_selector=selector({"t": "x"}))]
ELSEWHERE = pod(ns="other", labels=WEB, node=PLACED)
KEEPS_OFF_TEAM = pod(ns="other", node=PLACED, affinity=pod_anti_affinity(required=OF_TEAM))


@pytest.mark.parametrize(
    ("waiting", "old", "new"),
    [
        pytest.param(
            pod("waiting", affinity=pod_affinity(required=OF_TEAM)), None, ELSEWHERE, id="liked"
        ),
        pytest.param(
            pod("waiting", affinity=pod_anti_affinity(required=OF_TEAM)),
            ELSEWHERE,
            None,
            id="in the way",
        ),
        pytest.param(
            pod("waiting", ns="other", labels=WEB), KEEPS_OFF_TEAM, None, id="it kept the pod away"
        ),
    ],
)
def test_namespaces_by_label(waiting: Pod, old: Pod | None, new: Pod | None) -> None:
    assert hint_about_pod(plugin(), waiting, old, new) is QueueingHint.SKIP
    with_team = plugin(namespaces={"other": {"t": "x"}})
    assert hint_about_pod(with_team, waiting, old, new) is QueueingHint.QUEUE


ANYTHING = selector(expressions=[expression("app", "Exists")])


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param([pod_term(ANYTHING)], id="by no value"),
        pytest.param([pod_term(ANYTHING, namespace_selector=selector())], id="in any namespace"),
        pytest.param([pod_term(ANYTHING), pod_term(WEB)], id="by two terms"),
    ],
)
def test_terms_that_insist_on_little(wanted: list[PodAffinityTerm]) -> None:
    waiting = pod("waiting", labels=WEB, affinity=pod_affinity(required=wanted))
    other = pod(labels=WEB, node=PLACED, affinity=pod_anti_affinity(required=wanted))
    assert hint_about_pod(plugin(), waiting, None, other) is QueueingHint.QUEUE
    assert hint_about_pod(plugin(), waiting, other, None) is QueueingHint.QUEUE


NEAR, AWAY = (
    pod_affinity(required=[pod_term(WEB, key=ZONE)]),
    pod_anti_affinity(required=[pod_term(WEB, key=ZONE)]),
)


@pytest.mark.parametrize(
    ("affinity", "old", "new", "want"),
    [
        pytest.param(
            NEAR, None, node(zone="a"), QueueingHint.QUEUE, id="affinity: new, in a domain"
        ),
        pytest.param(NEAR, None, node(), QueueingHint.SKIP, id="affinity: new, in none"),
        pytest.param(
            NEAR, node(), node(zone="a"), QueueingHint.QUEUE, id="affinity: came into one"
        ),
        pytest.param(
            NEAR, node(zone="a"), node(zone="b"), QueueingHint.QUEUE, id="affinity: moved"
        ),
        pytest.param(NEAR, node(zone="a"), node(), QueueingHint.SKIP, id="affinity: left one"),
        pytest.param(
            NEAR, node(zone="a"), node(zone="a"), QueueingHint.SKIP, id="affinity: the same"
        ),
        pytest.param(AWAY, None, node(), QueueingHint.QUEUE, id="anti-affinity: new"),
        pytest.param(
            AWAY, node(), node(zone="a"), QueueingHint.SKIP, id="anti-affinity: came into one"
        ),
        pytest.param(
            AWAY, node(zone="a"), node(zone="b"), QueueingHint.QUEUE, id="anti-affinity: moved"
        ),
        pytest.param(
            AWAY, node(zone="a"), node(), QueueingHint.QUEUE, id="anti-affinity: left one"
        ),
        pytest.param(
            AWAY, node(zone="a"), node(zone="a"), QueueingHint.SKIP, id="anti-affinity: the same"
        ),
        pytest.param(None, None, node(zone="a"), QueueingHint.SKIP, id="no terms: new"),
    ],
)
def test_after_node_change(
    affinity: Affinity | None, old: Node | None, new: Node, want: QueueingHint
) -> None:
    assert after_node_change(pod(affinity=affinity), old, new) is want
