"""What an eviction manager never does, whatever the node uses."""

from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.kubelet.eviction.signals import MEMORY_PRESSURE
from berth.cluster.kubelet.eviction.stats import PodStats
from tests.cluster.kubelet.eviction.machines import GI, MI, Machine, hard, node_stats, pod_stats

CRITICAL = 2_000_000_000


@st.composite
def pods(draw: st.DrawFn) -> list[PodStats]:
    count = draw(st.integers(0, 6))
    return [
        pod_stats(
            f"p{number}",
            memory=draw(st.integers(0, 4 * 1024)) * MI,
            request=draw(st.sampled_from(["", "256Mi", "1Gi", "3Gi"])),
            priority=draw(st.sampled_from([-10, 0, 10, CRITICAL])),
        )
        for number in range(count)
    ]


@given(pods(), st.integers(1, 10 * 1024))
def test_at_most_one_pod_is_evicted_and_never_a_critical_one(
    given_pods: list[PodStats], threshold: int
) -> None:
    stats = node_stats(*given_pods, memory=10 * GI)
    machine = Machine(hard(memory_available=f"{threshold}Mi"), stats)

    found = machine.look()

    is_low = max(10 * GI - stats.memory, 0) < threshold * MI
    evictable = [given_pod for given_pod in given_pods if given_pod.pod.priority < CRITICAL]
    assert len(found.evictions) == (1 if is_low and evictable else 0)
    assert machine.manager.conditions == ((MEMORY_PRESSURE,) if is_low else ())
    for eviction in found.evictions:
        assert eviction.pod.priority < CRITICAL


@given(pods())
def test_evictions_end_with_enough_memory_or_with_nobody_left(given_pods: list[PodStats]) -> None:
    left = {given_pod.pod.metadata.name: given_pod for given_pod in given_pods}
    machine = Machine(hard(memory_available="2Gi"), node_stats(*left.values(), memory=10 * GI))
    for now in range(len(given_pods) + 1):
        evicted = machine.evicted(10.0 * now)
        for name in evicted:
            del left[name]
        machine.stats = node_stats(*left.values(), memory=10 * GI)

    used = sum(each.used.memory for each in left.values())
    assert 10 * GI - used >= 2 * GI or all(each.pod.priority == CRITICAL for each in left.values())


@given(pods())
def test_nobody_within_its_request_goes_before_one_that_exceeds_it(
    given_pods: list[PodStats],
) -> None:
    machine = Machine(hard(memory_available="10Gi"), node_stats(*given_pods, memory=10 * GI))
    names = {given_pod.pod.metadata.name: given_pod for given_pod in given_pods}
    for name in machine.evicted():
        evicted = names[name]
        if evicted.used.memory <= evicted.requests["memory"]:
            assert all(
                given_pod.used.memory <= given_pod.requests["memory"] or given_pod.is_critical
                for given_pod in given_pods
            )
