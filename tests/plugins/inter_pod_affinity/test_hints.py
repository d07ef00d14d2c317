"""InterPodAffinity: which events are worth another try (spec §3.9)."""

import pytest

from berth.framework.events import ActionType, EventResource, QueueingHint
from berth.objects.node import Node
from berth.objects.pod import Affinity, Pod
from berth_plugins.inter_pod_affinity.plugin import after_node_change
from tests.builders import (
    ZONE,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
)
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
            pod(labels=WEB, node=PLACED),
            QueueingHint.QUEUE,
            id="updated: out of the way",
        ),
        pytest.param(
            AVOIDS_BOTH,
            pod(labels=WEB, node=PLACED),
            pod(node=PLACED),
            QueueingHint.SKIP,
            id="updated: was not in the way of all terms",
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
        pytest.param(
            None,
            pod(
                node=PLACED,
                affinity=pod_anti_affinity(required=[pod_term({"is": "waiting"}), pod_term(WEB)]),
            ),
            None,
            QueueingHint.SKIP,
            id="deleted: not all of its terms are about the pod",
        ),
        pytest.param(None, pod(node=PLACED), None, QueueingHint.SKIP, id="deleted: of no concern"),
    ],
)
def test_after_pod_change(
    waiting: Affinity | None, old: Pod | None, new: Pod | None, want: QueueingHint
) -> None:
    a_pod = pod("waiting", labels={"is": "waiting"}, affinity=waiting)
    assert plugin().after_pod_change(a_pod, old, new) is want


def test_a_change_of_the_pod_itself() -> None:
    before, after = pod("waiting"), pod("waiting", labels=WEB, version="2")
    assert plugin().after_pod_change(before, before, after) is QueueingHint.QUEUE


def test_namespaces_by_label() -> None:
    likes_team = pod_affinity(required=[pod_term(WEB, namespace_selector=selector({"t": "x"}))])
    new = pod(ns="other", labels=WEB, node=PLACED)
    waiting = pod("waiting", affinity=likes_team)

    assert plugin().after_pod_change(waiting, None, new) is QueueingHint.SKIP
    with_team = plugin(namespaces={"other": {"t": "x"}})
    assert with_team.after_pod_change(waiting, None, new) is QueueingHint.QUEUE


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
