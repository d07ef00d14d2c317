"""PodTopologySpread: which nodes it rejects and how it ranks, case by case."""

from typing import Final

import numpy as np
import pytest

from berth.kube.objects.pod import Pod, Toleration, TopologySpreadConstraint
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Code, Status
from berth_plugins.pod_topology_spread.plugin import (
    MISSING_LABEL,
    SKEWED,
    DefaultConstraint,
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from tests.builders import (
    HOSTNAME,
    REGION,
    ZONE,
    expression,
    node,
    node_affinity,
    pod,
    requirement,
    selector,
    service,
    spread,
    taint,
    term,
    toleration,
)
from tests.plugins.evaluating import table
from tests.plugins.pod_topology_spread.spreading import final_scores, plugin, verdicts

WEB = selector({"app": "web"})
IN_A, IN_B, IN_C = node("a", zone="a"), node("b", zone="b"), node("c", zone="c")


HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"


def listed(*constraints: DefaultConstraint) -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(default_constraints=constraints, defaulting_type="List")


def web(name: str, on: str, *, ns: str = "default", deleted: str | None = None) -> Pod:
    return pod(name, ns=ns, labels={"app": "web"}, node=on, deleted=deleted)


def pending(*constraints: TopologySpreadConstraint, app: str = "web") -> Pod:
    return pod(labels={"app": app}, spread=constraints)


@pytest.mark.parametrize(
    ("waiting", "running", "want"),
    [
        pytest.param(
            pending(spread(selector=WEB)), [web("1", "a")], {"a": SKEWED}, id="one zone is ahead"
        ),
        pytest.param(
            pending(spread(selector=WEB)),
            [web("1", "a"), web("2", "b"), web("3", "c")],
            {},
            id="all zones have one",
        ),
        pytest.param(
            pending(spread(selector=WEB, max_skew=2)), [web("1", "a")], {}, id="a skew of two is ok"
        ),
        pytest.param(
            pending(spread(selector=WEB), app="db"), [web("1", "a")], {}, id="it is not its like"
        ),
        pytest.param(
            pending(spread(selector=WEB)),
            [web("1", "a", ns="other")],
            {},
            id="a pod of another namespace",
        ),
        pytest.param(
            pending(spread(selector=WEB)),
            [web("1", "a", deleted="2026-11-20T00:00:00Z")],
            {},
            id="a terminating pod",
        ),
        pytest.param(
            pending(spread(selector=selector())),
            [web("1", "a"), web("2", "a")],
            {},
            id="a selector for everything counts nothing",
        ),
        pytest.param(
            pending(spread(selector=None)), [web("1", "a")], {}, id="no selector selects nothing"
        ),
        pytest.param(
            pending(spread(selector=WEB, min_domains=4, max_skew=1)),
            [web("1", "a"), web("2", "b"), web("3", "c")],
            {"a": SKEWED, "b": SKEWED, "c": SKEWED},
            id="minDomains: a fourth domain is wanted",
        ),
        pytest.param(
            pending(spread(selector=WEB, min_domains=3)),
            [web("1", "a"), web("2", "b"), web("3", "c")],
            {},
            id="minDomains: three domains are wanted and there",
        ),
        pytest.param(
            pending(spread(REGION, selector=WEB)),
            [],
            {"a": MISSING_LABEL, "b": MISSING_LABEL, "c": MISSING_LABEL},
            id="no node has the label",
        ),
        pytest.param(
            pending(spread(selector=WEB), spread(REGION, selector=WEB)),
            [web("1", "a"), web("2", "a")],
            {"a": MISSING_LABEL, "b": MISSING_LABEL, "c": MISSING_LABEL},
            id="nothing is counted on nodes that lack one of the labels",
        ),
        pytest.param(
            pending(spread(HOSTNAME, selector=WEB), spread(selector=WEB, max_skew=9)),
            [web("1", "a")],
            {"a": SKEWED},
            id="the first of two constraints is violated",
        ),
        pytest.param(
            pending(spread(HOSTNAME, selector=WEB, max_skew=9), spread(selector=WEB)),
            [web("1", "a")],
            {"a": SKEWED},
            id="the second of two constraints is violated",
        ),
    ],
)
def test_filter(waiting: Pod, running: list[Pod], want: dict[str, Status]) -> None:
    nodes = table(IN_A, IN_B, IN_C, pods=running)
    assert verdicts(plugin(nodes), waiting, nodes) == {"a": None, "b": None, "c": None} | want


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        pytest.param(
            [spread(REGION, selector=WEB, max_skew=9), spread(selector=WEB)],
            MISSING_LABEL,
            id="the label of the first constraint is missing",
        ),
        pytest.param(
            [spread(selector=WEB), spread(REGION, selector=WEB, max_skew=9)],
            SKEWED,
            id="the first constraint is violated",
        ),
    ],
)
def test_a_node_is_told_the_first_reason_only(
    constraints: list[TopologySpreadConstraint], reason: Status
) -> None:
    """Node a has no region, and its zone has, on the other node, one pod too many."""
    near, far = node("near", zone="a", region="r"), node("far", zone="b", region="r")
    nodes = table(IN_A, near, far, pods=[web("1", "near")])
    answers = verdicts(plugin(nodes), pending(*constraints), nodes)
    assert answers == {"a": reason, "near": SKEWED, "far": None}


def test_match_label_keys_narrow_the_selector_to_the_pods_own_values() -> None:
    old = pod("1", labels={"app": "web", "version": "1"}, node="a")
    new = pod("2", labels={"app": "web", "version": "2"}, node="b")
    nodes = table(IN_A, IN_B, pods=[old, new])
    constraint = spread(selector=WEB, match_label_keys=["version", "no-such-label"])
    waiting = pod(labels={"app": "web", "version": "2"}, spread=[constraint])
    assert verdicts(plugin(nodes), waiting, nodes) == {"a": None, "b": SKEWED}

    everything = spread(selector=selector(), match_label_keys=["version"])
    waiting = pod(labels={"version": "2"}, spread=[everything])
    assert verdicts(plugin(nodes), waiting, nodes) == {"a": None, "b": SKEWED}

    nothing = spread(selector=None, match_label_keys=["version"])
    waiting = pod(labels={"version": "2"}, spread=[nothing])
    assert verdicts(plugin(nodes), waiting, nodes) == {"a": None, "b": None}


@pytest.mark.parametrize(
    ("constraint", "want"),
    [
        pytest.param(spread(selector=WEB), {}, id="nodes that affinity rules out do not count"),
        pytest.param(
            spread(selector=WEB, node_affinity_policy="Ignore"),
            {"a": SKEWED},
            id="affinity is not looked at",
        ),
    ],
)
def test_node_affinity_policy(
    constraint: TopologySpreadConstraint, want: dict[str, Status]
) -> None:
    nodes = table(IN_A, IN_B, pods=[web("1", "a")])
    labels, zone_a = {"app": "web"}, node_affinity(required=[term(requirement(ZONE, "In", "a"))])
    for waiting in (
        pod(labels=labels, node_selector={ZONE: "a"}, spread=[constraint]),
        pod(labels=labels, affinity=zone_a, spread=[constraint]),
    ):
        assert verdicts(plugin(nodes), waiting, nodes) == {"a": None, "b": None} | want


TAINTED = node("b", zone="b", taints=[taint("gpu")])


@pytest.mark.parametrize(
    ("constraint", "tolerations", "want"),
    [
        pytest.param(spread(selector=WEB), [], SKEWED, id="taints are not looked at"),
        pytest.param(
            spread(selector=WEB, node_taints_policy="Honor"),
            [],
            None,
            id="tainted nodes do not count",
        ),
        pytest.param(
            spread(selector=WEB, node_taints_policy="Honor"),
            [toleration("gpu")],
            SKEWED,
            id="the taint is tolerated",
        ),
    ],
)
def test_node_taints_policy(
    constraint: TopologySpreadConstraint, tolerations: list[Toleration], want: Status | None
) -> None:
    nodes = table(IN_A, TAINTED, pods=[web("1", "a")])
    waiting = pod(labels={"app": "web"}, tolerations=tolerations, spread=[constraint])
    assert verdicts(plugin(nodes), waiting, nodes)["a"] == want


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(pending(), id="no constraints and no siblings"),
        pytest.param(pending(spread(selector=WEB, soft=True)), id="a soft constraint only"),
    ],
)
def test_pre_filter_skips(waiting: Pod) -> None:
    nodes = table(IN_A)
    state = CycleState(nodes.exists.copy())
    assert plugin(nodes).pre_filter(state, PodInfo(waiting), nodes) is SKIP


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(pending(), id="no constraints and no siblings"),
        pytest.param(pending(spread(selector=WEB)), id="a hard constraint only"),
    ],
)
def test_pre_score_skips(waiting: Pod) -> None:
    nodes = table(IN_A)
    state = CycleState(nodes.exists.copy())
    assert plugin(nodes).pre_score(state, PodInfo(waiting), nodes) is SKIP


def test_a_selector_that_cannot_be_compiled_is_an_error() -> None:
    nodes = table(IN_A)
    wrong = selector(expressions=[expression("app", "In")])
    for soft in (False, True):
        info = PodInfo(pending(spread(selector=wrong, soft=soft)))
        state = CycleState(nodes.exists.copy())
        call = plugin(nodes).pre_score if soft else plugin(nodes).pre_filter
        status = call(state, info, nodes)
        assert status == Status(
            Code.ERROR,
            (f"topology spread constraint on {ZONE!r}: values of 'app': In needs at least one",),
        )


def test_a_terminating_pod_was_never_counted_but_is_taken_away_in_thought() -> None:
    """As kube-scheduler does: RemovePod does not ask what PreFilter skipped."""
    leaving = web("1", "a", deleted="2026-11-20T00:00:00Z")
    nodes = table(IN_A, IN_B, pods=[leaving, web("2", "a")])
    spreading, state = plugin(nodes), CycleState(nodes.exists.copy())
    info = PodInfo(pending(spread(selector=WEB)))
    assert spreading.pre_filter(state, info, nodes) is None
    part, there = nodes.take([nodes.row_of["a"]]), np.array([0])
    assert spreading.filter(state, info, part).status_of(0) == SKEWED

    part.remove_pods(there, [PodInfo(leaving)])
    spreading.remove_pods(state, info, there, PodBatch([PodInfo(leaving)]), part)
    assert spreading.filter(state, info, part).status_of(0) is None


# Scores.


@pytest.mark.parametrize(
    ("constraint", "running", "want"),
    [
        pytest.param(
            spread(selector=WEB, soft=True),
            [web("1", "a"), web("2", "a"), web("3", "b")],
            # ln(3 + 2) per pod: costs 3, 2 and 0
            {"a": 0, "b": 33, "c": 100},
            id="zones with few pods are better",
        ),
        pytest.param(
            spread(selector=WEB, soft=True, max_skew=5),
            [web("1", "a"), web("2", "a"), web("3", "b")],
            # 4 more for everybody: costs 7, 6 and 4
            {"a": 57, "b": 71, "c": 100},
            id="a large skew makes little of it",
        ),
        pytest.param(
            spread(HOSTNAME, selector=WEB, soft=True),
            [web("1", "a"), web("2", "a"), web("3", "b")],
            {"a": 0, "b": 33, "c": 100},
            id="by host name the pods on the node count",
        ),
        pytest.param(
            spread(selector=WEB, soft=True),
            [],
            {"a": 100, "b": 100, "c": 100},
            id="without pods all are best",
        ),
        pytest.param(
            spread(REGION, selector=WEB, soft=True),
            [web("1", "a")],
            {"a": 0, "b": 0, "c": 0},
            id="nobody has the label",
        ),
    ],
)
def test_scores(
    constraint: TopologySpreadConstraint, running: list[Pod], want: dict[str, int]
) -> None:
    nodes = table(IN_A, IN_B, IN_C, pods=running)
    assert final_scores(plugin(nodes), pending(constraint), nodes) == want


def two_zones_and_none(*running: Pod) -> NodeTable:
    return table(IN_A, IN_B, node("nowhere"), pods=running)


def test_nodes_without_the_label_of_a_pods_constraint_get_nothing() -> None:
    nodes = two_zones_and_none(web("1", "a"), web("2", "nowhere"))
    waiting = pending(spread(selector=WEB, soft=True))
    assert final_scores(plugin(nodes), waiting, nodes) == {"a": 0, "b": 100, "nowhere": 0}


def test_system_defaults_do_not_mind_missing_labels() -> None:
    nodes = two_zones_and_none(web("1", "a"))
    spreading = plugin(nodes, service("s", selects={"app": "web"}))
    # Host names: ln(3 + 2) + 2 on a, else 2; zones: ln(3 + 2) + 4 in a, 4 in b.
    assert final_scores(spreading, pending(), nodes) == {"a": 22, "b": 55, "nowhere": 100}


def test_listed_defaults_mean_labelled_nodes() -> None:
    nodes = two_zones_and_none(web("1", "a"))
    args = listed(DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable=SOFT))
    spreading = plugin(nodes, service("s", selects={"app": "web"}), args=args)
    assert final_scores(spreading, pending(), nodes) == {"a": 0, "b": 100, "nowhere": 0}


def test_own_constraints_of_either_kind_replace_the_defaults() -> None:
    nodes = two_zones_and_none(web("1", "a"))
    spreading = plugin(nodes, service("s", selects={"app": "web"}))
    info = PodInfo(pending(spread(selector=WEB)))
    assert spreading.pre_score(CycleState(nodes.exists.copy()), info, nodes) is SKIP


def test_an_empty_label_is_the_same_domain_as_none_for_system_defaults() -> None:
    empty = node("empty", labels={ZONE: ""})
    nodes = table(IN_A, empty, node("none"), pods=[web("1", "none"), web("2", "none")])
    spreading = plugin(nodes, service("s", selects={"app": "web"}))
    # Costs: 2 + 4 on a; 2 + 2 * ln(2 + 2) + 4, of two zones, on empty; 2 * ln(3 + 2) + 2 on none.
    assert final_scores(spreading, pending(), nodes) == {"a": 88, "empty": 55, "none": 100}


def test_defaults_of_the_hard_kind_filter() -> None:
    nodes = table(IN_A, IN_B, pods=[web("1", "a")])
    args = listed(DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable=HARD))
    spreading = plugin(nodes, service("s", selects={"app": "web"}), args=args)
    assert verdicts(spreading, pending(), nodes) == {"a": SKEWED, "b": None}


def test_a_handle_is_needed() -> None:
    with pytest.raises(TypeError, match="needs a handle"):
        PodTopologySpread()
