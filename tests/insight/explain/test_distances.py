"""The nearest nodes that columns find are those that asking about every node finds."""

from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.explain.explanation import Evaluation
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.explanation import ExplainsColumns, Objection
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import ZONE, node, node_affinity, pod, requirement, taint, term
from tests.harness import Harness
from tests.insight.explain.asking import explain

GPU = "example.com/gpu"

TERMS = (
    term(requirement(ZONE, "In", "z1")),
    term(requirement(ZONE, "In", "z2"), requirement("disk", "NotIn", "ssd")),
    term(requirement("disk", "Exists"), fields=[requirement("metadata.name", "In", "n1")]),
    term(requirement("disk", "Exists"), requirement("rack", "Exists")),
    term(requirement("disk", "In", "hdd")),
    term(),
)

disks = st.sampled_from(["ssd", "hdd"])
zones = st.sampled_from(["z1", "z2"])
sizes = st.sampled_from(["1", "2", "4"])


@st.composite
def clusters(draw: st.DrawFn) -> list[Node | Pod]:
    """Nodes of few sizes, so that many are equally near; some tainted, some without room for pods,
    some with GPUs or disks."""
    objects: list[Node | Pod] = []
    for number in range(draw(st.integers(1, 12))):
        name = f"n{number}"
        objects.append(
            node(
                name,
                cpu=draw(sizes),
                memory=f"{draw(sizes)}Gi",
                pods=draw(st.sampled_from([0, 1, 2, 110])),
                taints=[taint("a")] if draw(st.integers(0, 3)) == 0 else [],
                zone=draw(zones),
                labels={"disk": draw(disks)} if draw(st.booleans()) else {},
                allocatable={GPU: draw(sizes)} if draw(st.booleans()) else {},
            )
        )
        for used in draw(st.lists(sizes, max_size=2)):
            key = f"on-{name}-{len(objects)}"
            objects.append(pod(key, cpu=used, node=name))
    return objects


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    requests = {
        "cpu": draw(st.sampled_from(["0", "500m", "2", "8"])),
        "memory": draw(st.sampled_from(["0", "1Gi", "3Gi", "8Gi"])),
        GPU: draw(st.sampled_from(["0", "1", "3"])),
    }
    selector = {"disk": draw(disks)} if draw(st.booleans()) else {}
    terms = draw(st.lists(st.sampled_from(TERMS), max_size=2))
    return pod(
        "asked",
        requests=requests,
        node_selector=selector,
        affinity=node_affinity(required=terms) if terms else None,
    )


def evaluated(harness: Harness, limit: int | None) -> Evaluation:
    found = explain(harness, "default/asked", limit=limit).evaluation
    assert found is not None
    return found


@settings(max_examples=60)
@given(clusters(), pods(), st.integers(1, 4))
def test_the_nearest_of_few_are_the_first_of_all(
    objects: list[Node | Pod], asked: Pod, limit: int
) -> None:
    harness = Harness()
    harness.put(*objects, asked)

    few, every = evaluated(harness, limit), evaluated(harness, None)

    assert few.nodes == every.nodes[:limit]
    assert few.nearest_miss == every.nearest_miss
    assert few.next_misses == every.next_misses


@settings(max_examples=60)
@given(clusters(), pods())
def test_columns_tell_of_a_row_what_its_details_do(objects: list[Node | Pod], asked: Pod) -> None:
    harness = Harness()
    harness.put(*objects, asked)
    nodes, info, state = harness.scheduler.cache.table, PodInfo(asked), CycleState()
    (profile,) = harness.scheduler.profiles.values()
    plugins = [filter_ for filter_ in profile.filters if isinstance(filter_, ExplainsColumns)]

    for plugin in plugins:
        verdict = plugin.filter(state, info, nodes)
        rejected = verdict.rejected()
        objections = [*plugin.objections(state, info, nodes)]
        for row in np.flatnonzero(rejected).tolist() if rejected is not None else ():
            details = [*plugin.explain(state, info, nodes, row)]
            told = [*_of_row(objections, row, nodes.size)]
            assert told in ([], [_in_short(detail) for detail in details]), details

    assert [each.NAME for each in plugins] == ["NodeAffinity", "NodeResourcesFit"]


def _of_row(
    objections: list[Objection], row: int, size: int
) -> Iterator[tuple[ChangeKind | None, float]]:
    for objection in objections:
        if np.broadcast_to(objection.where, size)[row]:
            yield objection.kind, float(np.broadcast_to(objection.shortfall, size)[row])


def _in_short(detail: Detail) -> tuple[ChangeKind | None, float]:
    change = detail.change
    return (None, 1.0) if change is None else (change.kind, change.shortfall)
