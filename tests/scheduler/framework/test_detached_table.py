"""A copy of a table stays as it is when the table changes, and the table when the copy does."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.selectors import compile_selector
from berth.scheduler.framework.affinity_terms import TermKind
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_counters import PodMatcher
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import ZONE, node, pod, pod_anti_affinity, pod_term, selector

WEB = PodMatcher(None, compile_selector(selector({"app": "web"})), skip_terminating=True)
KEEPS_AWAY = pod_anti_affinity(required=[pod_term({"app": "web"}, key=ZONE)])
PODS: tuple[dict[str, Any], ...] = (
    {},
    {"labels": {"app": "web"}},
    {"affinity": KEEPS_AWAY},
    {"ports": [80]},
)
WEB_LABELS = {"app": "web"}
SIZE = 4


class World:
    """A table to which anything may happen."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.count = 0

    def add_pod(self, row: int, kind: int) -> None:
        if self.table.exists[row]:
            self.table.add_pod(row, self._pod(kind))

    def add_pods(self, row: int, kind: int) -> None:
        rows = [row, *np.flatnonzero(self.table.exists)[:1].tolist()]
        if self.table.exists[row]:
            self.table.add_pods(rows, [self._pod(kind) for _ in rows])

    def update_pod(self, row: int, kind: int) -> None:
        for uid, old in [*self.table.pods[row].items()][:1]:
            changed = pod(old.name, ns=old.namespace, cpu=kind, **PODS[kind])
            assert changed.metadata.uid == uid
            self.table.update_pod(row, PodInfo(changed))

    def remove_pod(self, row: int, _: int) -> None:
        for on_it in [*self.table.pods[row].values()][:1]:
            self.table.remove_pod(row, on_it)

    def remove_pods(self, row: int, _: int) -> None:
        on_it = [*self.table.pods[row].values()]
        self.table.remove_pods([row] * len(on_it), on_it)

    def set_node(self, row: int, kind: int) -> None:
        if self.table.exists[row]:
            name = self.table.name(row)
            self.table.set_node(row, node(name, cpu=8, labels={ZONE: f"z{kind}"}))

    def remove_node(self, row: int, _: int) -> None:
        if self.table.exists[row]:
            self.table.remove_node(row)

    def add_node(self, row: int, kind: int) -> None:
        if self.table.exists[row]:
            return
        self.count += 1
        self.table.add_node(node(f"m{self.count}", labels={ZONE: f"z{kind}"}))

    def _pod(self, kind: int) -> PodInfo:
        self.count += 1
        return PodInfo(pod(f"p{id(self)}-{self.count}", cpu=kind, **PODS[kind]))


def asked(table: NodeTable) -> Any:
    """What plugins learn of pods from counters, and of labels."""
    counters = table.pod_counters
    about = counters.terms_about(
        TermKind.REQUIRED_ANTI_AFFINITY, namespace="default", labels=WEB_LABELS, namespace_labels={}
    )
    zones = table.labels.values(ZONE)
    of_zones = counters.by_domain(WEB, table.labels, ZONE, among=table.exists)
    by_zone = {zones[i]: count for i, count in enumerate(of_zones.counts.tolist()) if count}
    return counters.counts(WEB).tolist(), about, by_zone


def picture(table: NodeTable) -> Any:
    """All else."""
    columns = (table.requested, table.free, table.pod_count, table.generation, table.exists)
    zones = table.labels.values(ZONE)
    return (
        [list(pods.items()) for pods in table.pods],
        [column.tolist() for column in columns],
        dict(table.row_of),
        [zones[i] for i in table.labels.ids(ZONE).tolist()],
        set(table.ports.users("TCP", 80)),
    )


def recounted(table: NodeTable) -> NodeTable:
    """The same pods, counted from the start."""
    twin = NodeTable()
    for row in range(table.size):
        twin.add_node(table.nodes[row] or node(f"dead-{row}"), dict(table.pods[row]))
    return twin


happenings = st.lists(
    st.tuples(
        st.sampled_from([name for name in vars(World) if not name.startswith("_")]),
        st.integers(0, SIZE - 1),
        st.integers(0, len(PODS) - 1),
    ),
    max_size=8,
)


def apply(world: World, happened: Any) -> None:
    for name, row, kind in happened:
        getattr(world, name)(row, kind)


@settings(max_examples=60, deadline=None)
@given(happenings, happenings, happenings, st.booleans(), st.booleans())
def test_neither_sees_what_happens_to_the_other(
    before: Any, here: Any, there: Any, is_counted: bool, is_asked_before: bool
) -> None:
    table = NodeTable()
    for row in range(SIZE):
        table.add_node(node(f"n{row}", labels={ZONE: f"z{row % 2}"}))
    world = World(table)
    apply(world, before)
    if is_counted:
        asked(table)
    copy = table.detached()
    want, want_asked = picture(table), asked(recounted(table))
    assert picture(copy) == want
    if is_asked_before:
        assert asked(copy) == want_asked

    apply(world, here)

    assert picture(copy) == want
    assert asked(copy) == want_asked
    want, want_asked = picture(table), asked(recounted(table))

    apply(World(copy), there)

    assert picture(table) == want
    assert asked(table) == want_asked
    assert asked(copy) == asked(recounted(copy))
    table.pod_counters.check_invariants()
    copy.pod_counters.check_invariants()
