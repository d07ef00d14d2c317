"""Affinity terms: what users write, compiled."""

import pytest

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.pod import PodAffinityTerm
from berth.kube.objects.selectors import EVERYTHING, NOTHING, Selector, compile_selector
from berth.scheduler.framework.affinity_terms import (
    NO_TERMS,
    AffinityTerm,
    HeldTerm,
    PodTerms,
    TermKind,
    compile_terms,
)
from tests.builders import (
    HOSTNAME,
    ZONE,
    affinities,
    expression,
    node_affinity,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
)

WEB = compile_selector(selector({"app": "web"}))


@pytest.mark.parametrize(
    ("written", "names", "by_label"),
    [
        pytest.param(pod_term({}), {"here"}, NOTHING, id="neither: the pod's own namespace"),
        pytest.param(pod_term({}, namespaces=["x", "y"]), {"x", "y"}, NOTHING, id="names"),
        pytest.param(
            pod_term({}, namespace_selector=selector()), set(), EVERYTHING, id="an empty selector"
        ),
        pytest.param(
            pod_term({}, namespaces=["x"], namespace_selector=selector({"app": "web"})),
            {"x"},
            WEB,
            id="names and a selector",
        ),
    ],
)
def test_namespaces(written: PodAffinityTerm, names: set[str], by_label: Selector) -> None:
    (term,) = compile_terms(
        pod(ns="here", affinity=pod_affinity(required=[written]))
    ).required_affinity
    assert term.namespaces == names
    assert term.namespace_selector == by_label


def test_all_kinds() -> None:
    near = AffinityTerm(ZONE, frozenset({"default"}), NOTHING, WEB)
    apart = AffinityTerm(HOSTNAME, frozenset({"default"}), NOTHING, WEB)
    written = affinities(
        pod_affinity(
            required=[pod_term({"app": "web"}, key=ZONE)],
            preferred=[(5, pod_term({"app": "web"}, key=ZONE))],
        ),
        pod_anti_affinity(
            required=[pod_term({"app": "web"})], preferred=[(7, pod_term({"app": "web"}))]
        ),
    )

    assert compile_terms(pod(affinity=written)) == PodTerms(
        required_affinity=(near,),
        required_anti_affinity=(apart,),
        preferred=((5, near), (-7, apart)),
        held=(
            HeldTerm(TermKind.REQUIRED_AFFINITY, near, 1),
            HeldTerm(TermKind.REQUIRED_ANTI_AFFINITY, apart, 1),
            HeldTerm(TermKind.PREFERRED, near, 5),
            HeldTerm(TermKind.PREFERRED, apart, -7),
        ),
    )


def test_a_term_written_twice_is_held_once_and_weighs_twice() -> None:
    web = pod_term({"app": "web"})
    terms = compile_terms(
        pod(affinity=pod_affinity(required=[web, web], preferred=[(5, web), (3, web)]))
    )
    assert [(held.kind, held.weight) for held in terms.held] == [
        (TermKind.REQUIRED_AFFINITY, 2),
        (TermKind.PREFERRED, 8),
    ]


def test_a_list_with_a_bad_term_counts_as_empty() -> None:
    bad = LabelSelector(match_expressions=(expression("app", "In"),))
    terms = compile_terms(
        pod(
            affinity=affinities(
                pod_affinity(required=[pod_term({"app": "web"}), pod_term(bad)]),
                pod_anti_affinity(required=[pod_term({"app": "web"})]),
            )
        )
    )
    assert terms.required_affinity == ()
    assert len(terms.required_anti_affinity) == len(terms.held) == 1
    assert terms.error == "values of 'app': In needs at least one"


def test_node_affinity_makes_no_terms() -> None:
    assert compile_terms(pod()) is NO_TERMS
    assert compile_terms(pod(affinity=node_affinity())) is NO_TERMS


@pytest.mark.parametrize(
    ("ns", "labels", "namespace_labels", "want"),
    [
        pytest.param("x", {"app": "web"}, {}, True, id="namespace by name"),
        pytest.param("y", {"app": "web"}, {"team": "a"}, True, id="namespace by label"),
        pytest.param("y", {"app": "web"}, {}, False, id="another namespace"),
        pytest.param("x", {"app": "db"}, {}, False, id="other labels"),
    ],
)
def test_what_a_term_is_about(
    ns: str, labels: dict[str, str], namespace_labels: dict[str, str], *, want: bool
) -> None:
    team = compile_selector(selector({"team": "a"}))
    term = AffinityTerm(ZONE, frozenset({"x"}), team, WEB)
    assert term.matches(ns, labels, namespace_labels=namespace_labels) is want
