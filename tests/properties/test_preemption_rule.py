"""Preemption finds what the rule finds, node by node and pod by pod (spec §6).

The reference evicts by making another cluster, without the pods in question, and asking from the
start whether the pod fits there. It knows nothing of overlays, of what plugins follow, of columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.outcome import Unschedulable
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.results import eligible_rows
from berth.scheduler.schedule_pod import schedule_pod, smallest_name
from tests.properties.crowds import PRIORITY, Crowd, crowds

NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")
UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


@dataclass(frozen=True)
class Found:
    """What the rule says of one node: whom to evict, most important first."""

    node: str
    victims: tuple[Pod, ...]
    violations: int


def fits(crowd: Crowd, node: str, running: Sequence[Pod]) -> Status | None:
    """Return why the pod does not fit *node* if *running* were all the pods there are."""
    beside = [p for p in crowd.nominated.get(node, ()) if priority(p) >= PRIORITY]
    for others in (beside, []) if beside else ([],):
        there = [*running, *(bound(other, node) for other in others)]
        cycle = Crowd(crowd.nodes, there, crowd.pending).cycle()
        status = evaluate(cycle, cycle.nodes.row_of[node])
        if status is not None:
            return status
    return None


def evaluate(cycle: Cycle, row: int) -> Status | None:
    nodes, diagnosis = cycle.nodes, Diagnosis(len(cycle.nodes))
    cycle.state.feasible = nodes.exists.copy()
    outcome = cycle.profile.run_pre_filter(cycle.state, cycle.pod, nodes)
    if outcome.status is not None:
        return outcome.status
    cycle.state.feasible, absent = eligible_rows(outcome, nodes)
    if not cycle.state.feasible[row]:
        return absent
    cycle.profile.run_filters(cycle.state, cycle.pod, nodes, diagnosis)
    return diagnosis.status_of(row)


def select_victims(crowd: Crowd, node: str) -> Found | Status:
    lower = sorted(
        (p for p in crowd.running if p.spec.node_name == node and priority(p) < PRIORITY),
        key=importance,
    )
    if not lower:
        return NO_VICTIMS
    running = [p for p in crowd.running if p not in lower]
    status = fits(crowd, node, running)
    if status is not None:
        return status
    left = {budget.metadata.name: budget.status.disruptions_allowed for budget in crowd.budgets}
    violating = []
    for one in lower:
        if left and one.metadata.labels["app"] == "web":
            left["pdb"] -= 1
            if left["pdb"] < 0:
                violating.append(one)
    victims = []
    for one in [*violating, *(p for p in lower if p not in violating)]:
        if fits(crowd, node, [*running, one]) is None:
            running.append(one)
        else:
            victims.append(one)
    if not victims:
        return Status.error(f'expected at least one victim pod on node "{node}"')
    victims.sort(key=importance)
    return Found(node, tuple(victims), sum(p in violating for p in victims))


def best(found: Sequence[Found]) -> list[str]:
    """Return the nodes whose victims are missed least."""
    left = list(found)
    for cost in (
        lambda f: f.violations,
        lambda f: priority(f.victims[0]),
        lambda f: sum(priority(p) + 2**31 for p in f.victims),
        lambda f: len(f.victims),
        lambda f: -min(start(p) for p in f.victims if priority(p) == priority(f.victims[0])),
    ):
        left = [f for f in left if cost(f) == min(map(cost, left))]
    return [f.node for f in left]


def importance(one: Pod) -> tuple[int, float]:
    return -priority(one), start(one)


def priority(one: Pod) -> int:
    return one.spec.priority or 0


def start(one: Pod) -> float:
    written = one.status.start_time
    return float("inf") if written is None else datetime.fromisoformat(written).timestamp()


def bound(one: Pod, node: str) -> Pod:
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, node_name=node))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(crowds(), st.integers(0, 3))
def test_preemption_follows_the_rule(crowd: Crowd, seed: int) -> None:
    rng, twin = Random(seed), Random()
    cycle = crowd.cycle(rng=rng)
    outcome = schedule_pod(cycle, select=smallest_name(cycle.nodes))
    if not isinstance(outcome, Unschedulable):
        return
    twin.setstate(rng.getstate())  # other plugins throw dice, too
    helped = run_post_filter_plugins(cycle, outcome)
    assert isinstance(helped, Unschedulable)
    result = helped.post_filter
    assert result is not None
    assert result.preemption is not None

    names = [cycle.nodes.name(row) for row in cycle.nodes.order.tolist()]
    before = {name: fits(crowd, name, crowd.running) for name in names}
    tried = [name for name in names if (s := before[name]) and s.code is Code.UNSCHEDULABLE]
    offset = twin.randrange(len(tried)) if tried else 0
    tried = tried[offset:] + tried[:offset]
    said = {name: select_victims(crowd, name) for name in tried}
    found = [one for one in said.values() if isinstance(one, Found)]
    found.sort(key=lambda one: one.violations > 0)

    told = result.preemption
    assert [(c.node, [v.name for v in c.victims], c.pdb_violations) for c in told.candidates] == [
        (one.node, [v.metadata.name for v in one.victims], one.violations) for one in found
    ]
    rejected = {name: one for name, one in said.items() if isinstance(one, Status)}
    assert {
        name: told.rejected.status_of(cycle.nodes.row_of[name]) for name in rejected
    } == rejected
    if found:
        assert sorted(c.node for c in told.equals) == sorted(best(found))
        assert told.chosen in list(told.equals)
        assert result.nominated_node == told.chosen.node
