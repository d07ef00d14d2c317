"""Every family of kube-scheduler 1.36.2, compared in type, stability, labels and buckets."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.runtime.metrics import Family
from berth.runtime.release import LATEST, EffectiveVersion
from berth.scheduler.metrics.absent import ABSENT
from berth.scheduler.metrics.process import declared
from berth.scheduler.metrics.selection import Selection
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.metrics.reading import Shape, exported, shape_of
from tests.scheduler.metrics.world import export_everything

RECORDING = Path(__file__).parent / "recorded" / "metrics.jsonl"

RECORDED = {
    line["name"]: Shape(
        line["type"],
        line.get("stability"),
        tuple(line.get("labels", ())),
        tuple(line.get("buckets", ())),
    )
    for line in map(json.loads, RECORDING.read_text().splitlines())
}

ATTEMPT_BUCKETS = (
    "0.001", "0.002", "0.004", "0.008", "0.016", "0.032", "0.064", "0.128", "0.256", "0.512",
    "1.024", "2.048", "4.096", "8.192", "16.384", "+Inf",
)  # fmt: skip
NUMBERS = (*(str(2**power) for power in range(11)), "+Inf")
LONG_BUCKETS = (*ATTEMPT_BUCKETS[:-1], "32.768", "+Inf")
UNSEEN = {
    "scheduler_permit_wait_duration_seconds": Shape(
        "histogram",
        "BETA",
        ("result",),
        (
            "0.001", "0.002", "0.004", "0.008", "0.016", "0.032", "0.064", "0.128", "0.256",
            "0.512", "1.024", "2.048", "4.096", "8.192", "16.384", "+Inf",
        ),
    ),
    "scheduler_resourceclaim_creates_total": Shape("counter", "ALPHA", ("status",)),
    "scheduler_dra_bindingconditions_allocations_total": Shape(
        "counter", "ALPHA", ("driver", "profile", "status")
    ),
    "scheduler_dra_bindingconditions_wait_duration_seconds": Shape(
        "histogram",
        "ALPHA",
        ("driver", "profile", "status"),
        (
            "0.1", "0.2", "0.4", "0.8", "1.6", "3.2", "6.4", "12.8", "25.6", "51.2", "102.4",
            "204.8", "409.6", "819.2", "+Inf",
        ),
    ),
    "scheduler_volume_scheduling_stage_error_total": Shape("counter", "ALPHA", ("operation",)),
    "leader_election_slowpath_total": Shape("counter", "ALPHA", ("name",)),
    "scheduler_podgroup_schedule_attempts_total": Shape("counter", "ALPHA", ("profile", "result")),
    "scheduler_podgroup_scheduling_attempt_duration_seconds": Shape(
        "histogram", "ALPHA", ("profile", "result"), ATTEMPT_BUCKETS
    ),
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": Shape(
        "histogram", "ALPHA", (), ATTEMPT_BUCKETS
    ),
    "scheduler_workload_preemption_attempts_total": Shape("counter", "ALPHA", ("result",)),
    "scheduler_workload_preemption_victims": Shape(
        "histogram", "ALPHA", (), NUMBERS
    ),
    "scheduler_preemption_workload_disruptions": Shape(
        "histogram", "ALPHA", ("preemptor",), NUMBERS
    ),
    "scheduler_preemption_evaluation_duration_seconds": Shape(
        "histogram", "ALPHA", ("preemptor", "result"), LONG_BUCKETS
    ),
    "scheduler_preemption_execution_duration_seconds": Shape(
        "histogram", "ALPHA", ("preemptor", "result"), LONG_BUCKETS
    ),
    "scheduler_preemption_pdb_violations_total": Shape("counter", "ALPHA", ("preemptor",)),
    "scheduler_generated_placements_total": Shape("counter", "ALPHA", ("profile",)),
    "scheduler_placement_evaluations_total": Shape("counter", "ALPHA", ("profile", "result")),
    "scheduler_placement_evaluation_duration_seconds": Shape(
        "histogram", "ALPHA", ("profile", "result"), ATTEMPT_BUCKETS
    ),
    "scheduler_async_api_call_execution_total": Shape("counter", "ALPHA", ("call_type", "result")),
    "scheduler_async_api_call_execution_duration_seconds": Shape(
        "histogram", "ALPHA", ("call_type", "result"), ATTEMPT_BUCKETS
    ),
    "scheduler_pending_async_api_calls": Shape("gauge", "ALPHA", ("call_type",)),
}  # fmt: skip
"""Families of spec §8 that had nothing to say when kube-scheduler was recorded."""

NEVER_SEEN_AND_ABSENT = {
    "scheduler_volume_binder_cache_requests_total",
}
"""More of those, one for each reason not to have them."""

KNOWN = RECORDED | UNSEEN
OURS = ("berth_", "python_")


def is_absent(name: str) -> bool:
    return any(_covers(pattern, name) for pattern in ABSENT)


def _covers(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def declared_shape(family: Family) -> Shape:
    return Shape(
        family.kind,
        family.stability,
        tuple(sorted(family.labels)),
        family.bounds if family.kind == "histogram" else (),
    )


LIKE_1_36 = EffectiveVersion.of("1.36")
OF_1_36 = [
    family.in_version(LIKE_1_36)
    for family in declared()
    if family.is_shown(LIKE_1_36, with_hidden=False)
]
OF_1_37 = {
    family.name: family.in_version(LATEST)
    for family in declared()
    if family.is_shown(LATEST, with_hidden=False)
}
INFORMER = ("group", "name", "resource", "version")
NEW_IN_1_37 = {
    "dynamic_resource_allocation_resourceclaim_creates_total": Shape(
        "counter", "ALPHA", ("admin_access", "owner_api_group", "owner_api_kind", "status")
    ),
    "scheduler_pre_queueing_hint_evaluations_total": Shape(
        "counter", "ALPHA", ("plugin", "result")
    ),
    "scheduler_queued_entities": Shape("gauge", "ALPHA", ("queue", "type")),
    "scheduler_queue_incoming_entities_total": Shape(
        "counter", "ALPHA", ("event", "queue", "type")
    ),
    "scheduler_batch_rescore_attempts_total": Shape("counter", "ALPHA", ("profile",)),
    "scheduler_batch_rescore_duration_seconds": Shape(
        "histogram",
        "ALPHA",
        ("profile",),
        (
            "1e-05", "2e-05", "4e-05", "8e-05", "0.00016", "0.00032", "0.00064", "0.00128",
            "0.00256", "0.00512", "0.01024", "0.02048", "+Inf",
        ),
    ),
    "informer_queued_items": Shape("gauge", "ALPHA", INFORMER),
    "informer_store_resource_version": Shape("gauge", "ALPHA", INFORMER),
    "informer_processing_latency_seconds": Shape(
        "histogram",
        "ALPHA",
        INFORMER,
        (
            "0.001", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10",
            "+Inf",
        ),
    ),
}  # fmt: skip
"""1.37 spec N5.2, N5.5."""
BETA_IN_1_37 = {
    "scheduler_plugin_execution_duration_seconds",
    "scheduler_scheduling_algorithm_duration_seconds",
}
GONE_IN_1_37 = {"scheduler_resourceclaim_creates_total"}
HIDDEN_IN_1_37 = {"scheduler_preemption_goroutines_duration_seconds"}


def test_what_1_37_changes() -> None:
    """1.37 spec N5.1, N5.2, N5.5."""
    before = {family.name: family for family in OF_1_36}
    new = {name: declared_shape(OF_1_37[name]) for name in OF_1_37.keys() - before.keys()}
    assert new == NEW_IN_1_37
    assert before.keys() - OF_1_37.keys() == GONE_IN_1_37 | HIDDEN_IN_1_37
    changed = {name for name in before.keys() & OF_1_37.keys() if before[name] != OF_1_37[name]}
    assert changed == BETA_IN_1_37
    assert {OF_1_37[name].stability for name in BETA_IN_1_37} == {"BETA"}
    with_hidden = {f.name for f in declared() if f.is_shown(LATEST, with_hidden=True)}
    assert with_hidden - OF_1_37.keys() == HIDDEN_IN_1_37


@pytest.mark.parametrize("family", OF_1_36, ids=lambda family: family.name)
def test_a_declared_family_is_as_recorded(family: Family) -> None:
    if family.name.startswith(OURS):
        assert family.name not in KNOWN
    else:
        assert declared_shape(family) == KNOWN[family.name]


def test_every_recorded_family_is_declared_or_absent_for_a_reason() -> None:
    ours = {family.name for family in OF_1_36}
    of_the_process = {name for name in RECORDED if name.startswith("process_")}
    assert {name for name in KNOWN if not is_absent(name)} == {
        name for name in ours | of_the_process if not name.startswith(OURS)
    }


@pytest.mark.parametrize("pattern", ABSENT)
def test_an_absence_is_of_something_that_kube_scheduler_has(pattern: str) -> None:
    names = RECORDED.keys() | NEVER_SEEN_AND_ABSENT
    assert any(_covers(pattern, name) for name in names)


class Everything(Collector):
    """What is in another registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        return self._registry.collect()


async def test_what_is_exported_is_as_recorded() -> None:
    harness = Harness()
    registry = export_everything(harness)
    harness.put(
        node("n1"),
        node("n2", cpu=1),
        pod("small"),
        pod("gated", gates=["wait"]),
        pod("big", cpu=99),
    )
    await harness.until_idle()

    selection = Selection(version=LIKE_1_36)
    selection.register(Everything(registry))
    seen = {n: shape_of(m) for n, m in exported(selection).items() if not n.startswith(OURS)}
    assert seen == {name: KNOWN[name] for name in seen}
    assert seen.keys() >= {name for name in RECORDED if name.startswith("process_")}
    assert not [name for name in seen if is_absent(name)]
