"""PodsByDomain: whatever comes and goes, it says what counting pod by pod says."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from berth.kube.objects.node import Taint
from berth.kube.objects.selectors import compile_selector
from berth.scheduler.framework import pods_by_domain
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_counters import PodCounters, PodMatcher
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pods_by_domain import NO_COUNT, PodsByDomain
from berth.scheduler.framework.replicas import CHANGES_KEPT
from berth.scheduler.framework.verdict import Ints, Mask
from tests.builders import HOSTNAME, ZONE, node, pod, selector, taint

WEB = PodMatcher(
    frozenset({"default"}), compile_selector(selector({"app": "web"})), skip_terminating=True
)
DB = PodMatcher(None, compile_selector(selector({"app": "db"})), skip_terminating=False)
KEYS = [ZONE, HOSTNAME]

zones = st.sampled_from(["", "z1", "z2"])
some_taints = st.sampled_from([[], [], [taint("dedicated")]])


def some_rows(nodes: NodeTable) -> Mask:
    """Return the same array until a node changes: all but the tainted."""
    return nodes.kept("some rows", lambda: nodes.exists & (nodes.taint_set == 0))


def ask(nodes: NodeTable, matcher: PodMatcher, key: str) -> PodsByDomain:
    return nodes.pod_counters.by_domain(matcher, nodes.labels, key, among=some_rows(nodes))


class Cluster(RuleBasedStateMachine):
    """Nodes and pods come, change and go; two columns are kept of the four that are asked for.

    Zones are few domains, host names mostly many.
    """

    def __init__(self) -> None:
        super().__init__()
        self.few_domains, pods_by_domain.FEW_DOMAINS = pods_by_domain.FEW_DOMAINS, 4
        self.table = NodeTable()
        self.table.pod_counters = PodCounters(self.table.pods, limit=2)
        self.placed: list[tuple[int, PodInfo]] = []
        self.serial = 0
        self.handed_out: list[tuple[Ints, list[int], Mask, list[bool]]] = []

    def teardown(self) -> None:
        pods_by_domain.FEW_DOMAINS = self.few_domains

    def name(self) -> str:
        self.serial += 1
        return f"x{self.serial}"

    @rule(zone=zones, taints=some_taints)
    def add_node(self, zone: str, taints: list[Taint]) -> None:
        self.table.add_node(node(self.name(), zone=zone, taints=taints))

    @precondition(lambda self: self.table.row_of)
    @rule(data=st.data(), zone=zones, taints=some_taints)
    def change_node(self, data: st.DataObject, zone: str, taints: list[Taint]) -> None:
        name = data.draw(st.sampled_from(sorted(self.table.row_of)))
        self.table.set_node(self.table.row_of[name], node(name, zone=zone, taints=taints))

    @precondition(lambda self: self.table.row_of)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(sorted(self.table.row_of.values())))
        self.table.remove_node(row)
        self.placed = [(on, one) for on, one in self.placed if on != row]

    @precondition(lambda self: self.table.row_of)
    @rule(
        data=st.data(),
        app=st.sampled_from(["web", "db"]),
        count=st.sampled_from([1, 1, 1, CHANGES_KEPT + 1]),
    )
    def add_pods(self, data: st.DataObject, app: str, count: int) -> None:
        row = data.draw(st.sampled_from(sorted(self.table.row_of.values())))
        for _ in range(count):
            new = PodInfo(pod(self.name(), labels={"app": app}))
            self.table.add_pod(row, new)
            self.placed.append((row, new))

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        row, gone = self.placed.pop(data.draw(st.integers(0, len(self.placed) - 1)))
        self.table.remove_pod(row, gone)

    @precondition(lambda self: self.table.row_of)
    @rule(
        data=st.data(),
        key=st.sampled_from(KEYS),
        limit=st.integers(0, 2),
        comes=st.lists(st.booleans(), min_size=1, max_size=8),
    )
    def pods_come_and_go(
        self, data: st.DataObject, key: str, limit: int, comes: list[bool]
    ) -> None:
        for come in comes:
            if come:
                self.add_pods(data, "web", 1)
            elif self.placed:
                self.remove_pod(data)
            self.says_what_a_count_says(WEB, key, limit)

    @rule(matcher=st.sampled_from([WEB, DB]), key=st.sampled_from(KEYS), limit=st.integers(0, 2))
    def asks(self, matcher: PodMatcher, key: str, limit: int) -> None:
        self.says_what_a_count_says(matcher, key, limit)

    def says_what_a_count_says(self, matcher: PodMatcher, key: str, limit: int) -> None:
        found, values = ask(self.table, matcher, key), self.table.labels.values(key)
        node_of = {row: each for row, each in enumerate(self.table.nodes) if each is not None}
        label_of = {row: each.metadata.labels.get(key) for row, each in node_of.items()}
        counts = dict.fromkeys(label_of.values(), 0)
        among = {label_of[row] for row in label_of if not node_of[row].spec.taints}
        for row, each in self.placed:
            if not node_of[row].spec.taints:
                counts[label_of[row]] += matcher.matches(each.namespace, each.labels)
        counts[None] = 0
        assert [counts[value] for value in values] == found.counts.tolist()
        of_domains = [counts[label] for label in among - {None}]
        assert found.domains == len(of_domains)
        assert found.fewest == min(of_domains, default=NO_COUNT)
        over = found.rows_over(limit)
        assert {row: bool(over[row]) for row in label_of} == {
            row: counts[label] > limit for row, label in label_of.items()
        }
        self.handed_out.append((found.counts, found.counts.tolist(), over, over.tolist()))

    @invariant()
    def what_was_handed_out_stays(self) -> None:
        for counts, were, over, was in self.handed_out:
            assert (counts.tolist(), over.tolist()) == (were, was)


TestPodsByDomain = Cluster.TestCase
TestPodsByDomain.settings = settings(max_examples=40, stateful_step_count=30)
