"""PodCounters: whatever happens, the columns say what a recount of all pods says."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from berth.kube.objects.pod import Affinity
from berth.kube.objects.selectors import EVERYTHING, NOTHING, Selector, compile_selector
from berth.scheduler.framework.affinity_terms import HeldTerm, TermKind, terms_of
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_counters import PodCounters, PodMatcher
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import (
    ZONE,
    affinities,
    expression,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
)

WEB = compile_selector(selector({"app": "web"}))
SELECTORS = [
    EVERYTHING,
    NOTHING,
    WEB,
    compile_selector(selector({"app": "web", "tier": "back"})),
    compile_selector(selector(expressions=[expression("app", "In", "web", "db")])),
    compile_selector(selector(expressions=[expression("app", "NotIn", "web")])),
    compile_selector(selector(expressions=[expression("tier", "DoesNotExist")])),
]
MATCHERS = [
    PodMatcher(namespaces, chosen, skip_terminating=skip)
    for namespaces in (None, frozenset({"a"}), frozenset({"a", "b"}))
    for chosen in SELECTORS
    for skip in (True, False)
]
AFFINITIES = [
    None,
    pod_affinity(required=[pod_term({"app": "web"}, key=ZONE)]),
    pod_anti_affinity(required=[pod_term({"app": "web"}, key=ZONE)]),
    affinities(
        pod_anti_affinity(required=[pod_term({"app": "web"}, key=ZONE), pod_term(selector())]),
        pod_affinity(preferred=[(5, pod_term({"app": "db"})), (3, pod_term({"app": "db"}))]),
    ),
]
HELD = list(
    dict.fromkeys(
        held
        for ns in "ab"
        for affinity in AFFINITIES
        for held in terms_of(PodInfo(pod(ns=ns, affinity=affinity)).template).held
    )
)


def recount(table: NodeTable, is_counted: Callable[[PodInfo], bool]) -> list[int]:
    return [sum(is_counted(pod) for pod in pods.values()) for pods in table.pods]


def is_matched(pod: PodInfo, matcher: PodMatcher) -> bool:
    """The rule, written down once more."""
    if matcher.namespaces is not None and pod.namespace not in matcher.namespaces:
        return False
    if matcher.skip_terminating and pod.pod.metadata.deletion_timestamp:
        return False
    return matcher.selector.matches(pod.labels)


class Cluster(RuleBasedStateMachine):
    """Nodes and pods come, change and go; three columns are kept of the many asked for."""

    LIMIT = 3

    def __init__(self) -> None:
        super().__init__()
        self.table = NodeTable()
        self.table.pod_counters = PodCounters(self.table.pods, limit=self.LIMIT)
        self.serial = 0
        self.placed: dict[PodInfo, int] = {}

    def next_name(self) -> str:
        self.serial += 1
        return f"x{self.serial}"

    def rows(self) -> list[int]:
        return sorted(self.table.row_of.values())

    @rule()
    def add_node(self) -> None:
        self.table.add_node(node(self.next_name()))

    @precondition(lambda self: self.rows())
    @rule(data=st.data())
    def remove_node_and_bring_back_its_pods(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.rows()))
        pods = dict(self.table.pods[row])
        self.table.remove_node(row)
        again = self.table.add_node(node(self.next_name()), pods)
        self.placed.update((pod, again) for pod in pods.values())

    @precondition(lambda self: self.rows())
    @rule(data=st.data())
    def lose_node(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.rows()))
        for gone in self.table.pods[row].values():
            del self.placed[gone]
        self.table.remove_node(row)

    @precondition(lambda self: self.rows())
    @rule(
        data=st.data(),
        ns=st.sampled_from("ab"),
        app=st.sampled_from(["", "web", "db"]),
        tier=st.sampled_from(["", "back"]),
        affinity=st.sampled_from(AFFINITIES),
        deleted=st.sampled_from([None, "2026-01-01T00:00:00Z"]),
    )
    def add_pod(
        self,
        data: st.DataObject,
        ns: str,
        app: str,
        tier: str,
        affinity: Affinity | None,
        deleted: str | None,
    ) -> None:
        labels = {key: value for key, value in {"app": app, "tier": tier}.items() if value}
        row = data.draw(st.sampled_from(self.rows()))
        name = self.next_name()
        info = PodInfo(pod(name, ns=ns, labels=labels, affinity=affinity, deleted=deleted))
        self.table.add_pod(row, info)
        self.placed[info] = row

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        info = data.draw(st.sampled_from(sorted(self.placed, key=lambda info: info.name)))
        self.table.remove_pod(self.placed.pop(info), info)

    @rule(matcher=st.sampled_from(MATCHERS))
    def ask_who_matches(self, matcher: PodMatcher) -> None:
        got = self.table.pod_counters.counts(matcher)
        assert got.tolist() == recount(self.table, lambda pod: is_matched(pod, matcher))

    @rule(held=st.sampled_from(HELD))
    def ask_who_holds(self, held: HeldTerm) -> None:
        got = self.table.pod_counters.counts(held)
        assert got.tolist() == recount(self.table, lambda pod: held in terms_of(pod.template).held)

    @rule(
        kind=st.sampled_from(TermKind),
        ns=st.sampled_from("ab"),
        app=st.sampled_from(["web", "db", "x"]),
    )
    def ask_which_terms(self, kind: TermKind, ns: str, app: str) -> None:
        got = self.table.pod_counters.terms_about(
            kind, namespace=ns, labels={"app": app}, namespace_labels={}
        )
        assert len(got) == len(set(got))
        assert set(got) == {
            held
            for pods in self.table.pods
            for pod in pods.values()
            for held in terms_of(pod.template).held
            if held.kind is kind and held.term.matches(ns, {"app": app}, namespace_labels={})
        }

    @invariant()
    def columns_are_right(self) -> None:
        self.table.pod_counters.check_invariants()
        assert len(self.table.pod_counters._columns) <= self.LIMIT


TestCluster = Cluster.TestCase


@pytest.fixture
def table() -> NodeTable:
    """Two nodes, with a web pod on each."""
    table = NodeTable()
    for name in ("n1", "n2"):
        row = table.add_node(node(name))
        table.add_pod(row, PodInfo(pod(f"on-{name}", labels={"app": "web"})))
    return table


EVERY_WEB = PodMatcher(None, WEB, skip_terminating=False)


def test_a_column_cannot_be_written(table: NodeTable) -> None:
    with pytest.raises(ValueError, match="read-only"):
        table.pod_counters.counts(EVERY_WEB)[0] = 7


def test_a_part_counts_its_own_pods(table: NodeTable) -> None:
    assert table.pod_counters.counts(EVERY_WEB).tolist() == [1, 1]
    part = table.take([1])
    part.add_pod(0, PodInfo(pod("more", labels={"app": "web"})))

    assert part.pod_counters.counts(EVERY_WEB).tolist() == [2]
    part.remove_pod(0, next(iter(part.pods[0].values())))
    assert part.pod_counters.counts(EVERY_WEB).tolist() == [1]
    assert table.pod_counters.counts(EVERY_WEB).tolist() == [1, 1]


def test_a_column_grows_with_the_table(table: NodeTable) -> None:
    assert table.pod_counters.counts(EVERY_WEB).tolist() == [1, 1]
    for i in range(5):
        table.add_node(node(f"more-{i}"))
    table.add_pod(6, PodInfo(pod("late", labels={"app": "web"})))

    assert table.pod_counters.counts(EVERY_WEB).tolist() == [1, 1, 0, 0, 0, 0, 1]


def test_the_column_unused_for_longest_is_dropped(table: NodeTable) -> None:
    counters = table.pod_counters = PodCounters(table.pods, limit=2)
    one, two, three = (PodMatcher(frozenset({ns}), WEB, skip_terminating=True) for ns in "abc")
    for matcher in (one, two, one, three):
        counters.counts(matcher)

    assert list(counters._columns) == [one, three]


@pytest.mark.parametrize(
    ("ns", "chosen", "deleted", "want"),
    [
        pytest.param("a", WEB, None, True, id="namespace and labels fit"),
        pytest.param("b", WEB, None, False, id="another namespace"),
        pytest.param("a", SELECTORS[5], None, False, id="other labels"),
        pytest.param("a", WEB, "2026-01-01T00:00:00Z", False, id="on its way out"),
    ],
)
def test_matching(ns: str, chosen: Selector, deleted: str | None, *, want: bool) -> None:
    matcher = PodMatcher(frozenset({"a"}), chosen, skip_terminating=True)
    assert matcher.matches(ns, {"app": "web"}, terminating=deleted is not None) is want


def test_both_of_two_matchers() -> None:
    everywhere = PodMatcher(None, WEB, skip_terminating=False)
    ab = PodMatcher(frozenset("ab"), SELECTORS[6], skip_terminating=True)
    bc = PodMatcher(frozenset("bc"), EVERYTHING, skip_terminating=False)

    both = WEB.and_also(SELECTORS[6])
    assert everywhere.and_also(ab) == PodMatcher(frozenset("ab"), both, skip_terminating=True)
    assert ab.and_also(bc).namespaces == frozenset("b")
    assert everywhere.and_also(everywhere) == everywhere
