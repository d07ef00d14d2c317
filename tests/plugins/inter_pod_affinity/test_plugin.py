"""InterPodAffinity: which nodes it rejects, why, and which it prefers."""

from collections.abc import Mapping, Sequence

import pytest
from pydantic import ValidationError

from berth.kube.objects.pod import Affinity, Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Lister, Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.inter_pod_affinity.plugin import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
    InterPodAffinityArgs,
)
from tests.builders import (
    ZONE,
    affinities,
    expression,
    namespace,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
)
from tests.plugins.evaluating import table
from tests.plugins.inter_pod_affinity.affinity_evaluating import plugin, raw_scores, verdicts

NODES = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("nowhere"))
WEB = {"app": "web"}
NEAR_WEB = pod_term(WEB, key=ZONE)
NAMESPACES: Mapping[str, Mapping[str, str]] = {"default": {}, "x": {"team": "x"}, "y": {}}
TEAM_X = selector({"team": "x"})
NOT_TEAM_X = selector(expressions=[expression("team", "NotIn", "x")])


def everywhere(status: Status | None) -> dict[str, Status | None]:
    return dict.fromkeys((one.name for one in NODES), status)


@pytest.mark.parametrize(
    ("a_pod", "running", "want"),
    [
        pytest.param(
            pod(affinity=pod_affinity(required=[NEAR_WEB])),
            [pod("w", labels=WEB, node="a1")],
            {"a1": None, "a2": None, "b1": AFFINITY, "nowhere": AFFINITY},
            id="affinity: the domain of a pod that matches",
        ),
        pytest.param(
            pod(affinity=pod_affinity(required=[NEAR_WEB])),
            [pod("w", labels=WEB, node="a1", deleted="2026-01-01T00:00:00Z")],
            {"a1": None, "a2": None, "b1": AFFINITY, "nowhere": AFFINITY},
            id="affinity: a terminating pod counts",
        ),
        pytest.param(
            pod(affinity=pod_affinity(required=[NEAR_WEB, pod_term({"tier": "back"}, key=ZONE)])),
            [
                pod("w", labels=WEB, node="a1"),
                pod("t", labels={"tier": "back"}, node="a1"),
                pod("both", labels={"app": "web", "tier": "back"}, node="b1"),
            ],
            {"a1": AFFINITY, "a2": AFFINITY, "b1": None, "nowhere": AFFINITY},
            id="affinity: one pod must match all terms",
        ),
        pytest.param(
            pod(affinity=pod_affinity(required=[NEAR_WEB, pod_term(WEB)])),
            [pod("w", labels=WEB, node="a1")],
            {"a1": None, "a2": AFFINITY, "b1": AFFINITY, "nowhere": AFFINITY},
            id="affinity: in its domain of every key",
        ),
        pytest.param(
            pod(labels=WEB, affinity=pod_affinity(required=[NEAR_WEB])),
            [],
            {"a1": None, "a2": None, "b1": None, "nowhere": AFFINITY},
            id="affinity: the first of a series goes where there are domains",
        ),
        pytest.param(
            pod(labels=WEB, affinity=pod_affinity(required=[NEAR_WEB])),
            [pod("w", labels=WEB, node="nowhere")],
            {"a1": None, "a2": None, "b1": None, "nowhere": AFFINITY},
            id="affinity: a pod outside of all domains does not make it the second",
        ),
        pytest.param(
            pod(labels=WEB, affinity=pod_affinity(required=[NEAR_WEB])),
            [pod("w", labels=WEB, node="b1")],
            {"a1": AFFINITY, "a2": AFFINITY, "b1": None, "nowhere": AFFINITY},
            id="affinity: the second of a series follows the first",
        ),
        pytest.param(
            pod(affinity=pod_affinity(required=[NEAR_WEB])),
            [],
            everywhere(AFFINITY),
            id="affinity: the first pod, but not of its own kind",
        ),
        pytest.param(
            pod(affinity=pod_affinity(required=[pod_term(None, key=ZONE)])),
            [pod("w", labels=WEB, node="a1")],
            everywhere(AFFINITY),
            id="affinity: without a selector nothing matches",
        ),
        pytest.param(
            pod(affinity=pod_anti_affinity(required=[NEAR_WEB])),
            [pod("w", labels=WEB, node="a1")],
            {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY, "b1": None, "nowhere": None},
            id="anti-affinity: other domains, and nodes in none",
        ),
        pytest.param(
            pod(labels=WEB),
            [pod("w", node="a1", affinity=pod_anti_affinity(required=[NEAR_WEB]))],
            {
                "a1": EXISTING_ANTI_AFFINITY,
                "a2": EXISTING_ANTI_AFFINITY,
                "b1": None,
                "nowhere": None,
            },
            id="a running pod keeps it out of its domain",
        ),
        pytest.param(
            pod(labels=WEB),
            [pod("w", node="nowhere", affinity=pod_anti_affinity(required=[NEAR_WEB]))],
            None,
            id="a running pod outside of all domains keeps nobody out",
        ),
        pytest.param(
            pod(labels=WEB, affinity=pod_anti_affinity(required=[NEAR_WEB])),
            [pod("w", labels=WEB, node="a1", affinity=pod_anti_affinity(required=[NEAR_WEB]))],
            {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY, "b1": None, "nowhere": None},
            id="both: the pod's own reason is told",
        ),
        pytest.param(
            pod(affinity=pod_affinity(preferred=[(1, NEAR_WEB)])),
            [pod("w", labels=WEB, node="a1", affinity=pod_affinity(required=[NEAR_WEB]))],
            None,
            id="preferences, and affinity of running pods, reject nobody",
        ),
    ],
)
def test_filter(a_pod: Pod, running: Sequence[Pod], want: dict[str, Status | None] | None) -> None:
    assert verdicts(plugin(), a_pod, table(*NODES, pods=running)) == want


@pytest.mark.parametrize(
    ("affinity", "want"),
    [
        pytest.param(pod_anti_affinity(required=[pod_term(WEB)]), {"a1"}, id="none: the pod's own"),
        pytest.param(
            pod_anti_affinity(required=[pod_term(WEB, namespaces=["x", "y"])]),
            {"a2", "b1"},
            id="names, without the pod's own",
        ),
        pytest.param(
            pod_anti_affinity(required=[pod_term(WEB, namespace_selector=TEAM_X)]),
            {"a2"},
            id="a selector",
        ),
        pytest.param(
            pod_anti_affinity(
                required=[pod_term(WEB, namespaces=["y"], namespace_selector=TEAM_X)]
            ),
            {"a2", "b1"},
            id="names and a selector",
        ),
        pytest.param(
            pod_anti_affinity(required=[pod_term(WEB, namespace_selector=selector())]),
            {"a1", "a2", "b1", "nowhere"},
            id="an empty selector: all, known or not",
        ),
        pytest.param(
            pod_anti_affinity(required=[pod_term(WEB, namespace_selector=NOT_TEAM_X)]),
            {"a1", "a2", "b1", "nowhere"},
            id="a selector that asks for absence alone: all, as in kube-scheduler",
        ),
    ],
)
def test_namespaces_of_the_pods_own_terms(affinity: Affinity, want: set[str]) -> None:
    running = [
        pod("d", labels=WEB, node="a1"),
        pod("x", ns="x", labels=WEB, node="a2"),
        pod("y", ns="y", labels=WEB, node="b1"),
        pod("z", ns="unheard-of", labels=WEB, node="nowhere"),
    ]
    nodes = table(*NODES, pods=running)
    found = verdicts(plugin(namespaces=NAMESPACES), pod(affinity=affinity), nodes)

    assert found is not None
    assert {name for name, status in found.items() if status} == want


@pytest.mark.parametrize(
    ("ns", "want"),
    [
        pytest.param("default", {"nowhere"}, id="no team"),
        pytest.param("x", {"a1"}, id="team x"),
        pytest.param("y", {"a2", "nowhere"}, id="by name, and no team"),
        pytest.param("unheard-of", {"nowhere"}, id="no labels known"),
    ],
)
def test_namespaces_of_running_pods_terms(ns: str, want: set[str]) -> None:
    running = [
        pod(f"on-{where}", ns="other", node=where, affinity=pod_anti_affinity(required=[repelling]))
        for where, repelling in {
            "a1": pod_term(WEB, namespace_selector=TEAM_X),
            "a2": pod_term(WEB, namespaces=["y"]),
            "b1": pod_term(WEB),
            "nowhere": pod_term(WEB, namespace_selector=NOT_TEAM_X),
        }.items()
    ]
    found = verdicts(
        plugin(namespaces=NAMESPACES), pod(ns=ns, labels=WEB), table(*NODES, pods=running)
    )

    assert found is not None
    assert {name for name, status in found.items() if status} == want


def test_namespaces_are_listed_anew_when_they_change() -> None:
    known = Lister([namespace("y")])
    affinity = InterPodAffinity(None, Handle(NodeTable(), listers=Listers(namespaces=known)))
    wants_x = pod(affinity=pod_anti_affinity(required=[pod_term(WEB, namespace_selector=TEAM_X)]))
    nodes = table(*NODES, pods=[pod("y", ns="y", labels=WEB, node="b1")])
    assert verdicts(affinity, wants_x, nodes) == everywhere(None)

    known.on_add(namespace("y", labels={"team": "x"}))

    assert verdicts(affinity, wants_x, nodes) == everywhere(None) | {"b1": ANTI_AFFINITY}


def test_a_term_that_cannot_be_parsed() -> None:
    bad = selector(expressions=[expression("app", "In")])
    a_pod = PodInfo(pod(affinity=pod_affinity(required=[pod_term(bad)])))
    nodes = table(*NODES)
    message = "parsing pod: values of 'app': In needs at least one"

    assert plugin().pre_filter(CycleState(), a_pod, nodes) == Status.unresolvable(message)
    assert plugin().pre_score(CycleState(), a_pod, nodes) == Status.error(message)


LIKES = pod_affinity(preferred=[(5, NEAR_WEB)])
DISLIKES = pod_anti_affinity(preferred=[(3, pod_term(WEB))])


@pytest.mark.parametrize(
    ("a_pod", "running", "want"),
    [
        pytest.param(
            pod(affinity=affinities(LIKES, DISLIKES)),
            [pod("w1", labels=WEB, node="a1"), pod("w2", labels=WEB, node="b1")],
            {"a1": 2, "a2": 5, "b1": 2, "nowhere": 0},
            id="its own preferences, for and against",
        ),
        pytest.param(
            pod(affinity=LIKES),
            [pod(f"w{i}", labels=WEB, node="a1") for i in range(3)],
            {"a1": 15, "a2": 15, "b1": 0, "nowhere": 0},
            id="every pod counts",
        ),
        pytest.param(
            pod(labels=WEB),
            [pod("w", node="a1", affinity=affinities(LIKES, DISLIKES))],
            {"a1": 2, "a2": 5, "b1": 0, "nowhere": 0},
            id="preferences of a running pod",
        ),
        pytest.param(
            pod(labels=WEB),
            [pod("w", node="a1", affinity=pod_affinity(required=[NEAR_WEB, pod_term(WEB)]))],
            {"a1": 2, "a2": 1, "b1": 0, "nowhere": 0},
            id="required affinity of a running pod weighs one per term",
        ),
        pytest.param(
            pod(labels=WEB),
            [
                pod("w", node="a1", affinity=LIKES),
                pod("v", node="a2", affinity=pod_anti_affinity(preferred=[(5, NEAR_WEB)])),
            ],
            {"a1": 0, "a2": 0, "b1": 0, "nowhere": 0},
            id="weights that cancel out are scores still",
        ),
        pytest.param(
            pod(affinity=LIKES), [pod("other", node="a1")], None, id="nobody to like: skip"
        ),
        pytest.param(
            pod(affinity=LIKES),
            [pod("w", labels=WEB, node="nowhere")],
            None,
            id="only outside of all domains: skip",
        ),
        pytest.param(
            pod(labels=WEB),
            [pod("w", node="a1", affinity=pod_anti_affinity(required=[NEAR_WEB]))],
            None,
            id="required anti-affinity is no preference",
        ),
    ],
)
def test_scores(a_pod: Pod, running: Sequence[Pod], want: dict[str, int] | None) -> None:
    assert raw_scores(plugin(), a_pod, table(*NODES, pods=running)) == want


@pytest.mark.parametrize(
    ("args", "a_pod", "want"),
    [
        pytest.param(
            InterPodAffinityArgs(hard_pod_affinity_weight=9), pod(labels=WEB), 14, id="weight 9"
        ),
        pytest.param(
            InterPodAffinityArgs(hard_pod_affinity_weight=0), pod(labels=WEB), 5, id="weight 0"
        ),
        pytest.param(
            InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True),
            pod(labels=WEB),
            None,
            id="not scored without preferences of its own",
        ),
        pytest.param(
            InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True),
            pod(labels=WEB, affinity=DISLIKES),
            6,
            id="with preferences of its own, those of others count as well",
        ),
    ],
)
def test_args(args: InterPodAffinityArgs, a_pod: Pod, want: int | None) -> None:
    near = pod_affinity(required=[NEAR_WEB], preferred=[(5, NEAR_WEB)])
    scores = raw_scores(
        plugin(args), a_pod, table(*NODES, pods=[pod("w", node="a1", affinity=near)])
    )
    assert (scores and scores["a1"]) == want


@pytest.mark.parametrize("weight", [-1, 101])
def test_args_are_checked(weight: int) -> None:
    with pytest.raises(ValidationError, match="hardPodAffinityWeight"):
        InterPodAffinityArgs.model_validate({"hardPodAffinityWeight": weight})


def test_it_needs_a_handle() -> None:
    with pytest.raises(TypeError, match="needs a handle"):
        InterPodAffinity()
