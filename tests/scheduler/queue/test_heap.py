"""PodHeap: order, replacement, removal."""

from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.queue.heap import PodHeap
from tests.builders import pod
from tests.scheduler.queue.world import priority_sort


def waiting(name: str, *, priority: int = 0, since: float = 0.0) -> QueuedPodInfo:
    return QueuedPodInfo(PodInfo(pod(name, priority=priority)), timestamp=since)


def names(heap: PodHeap) -> list[str]:
    return [queued.pod.metadata.name for queued in heap.in_order()]


def test_equal_pods_come_out_in_order_of_arrival() -> None:
    heap = PodHeap(priority_sort)
    for name in ("c", "a", "b"):
        heap.add(waiting(name))
    heap.add(waiting("urgent", priority=1))

    assert names(heap) == ["urgent", "c", "a", "b"]


def test_a_pod_of_the_same_key_is_replaced() -> None:
    heap = PodHeap(priority_sort)
    heap.add(waiting("a"))
    heap.add(waiting("b"))
    again = waiting("a", since=1.0)
    heap.add(again)

    assert len(heap) == 2
    assert heap.get("default/a") is again
    assert names(heap) == ["b", "a"]


def test_a_changed_pod_moves_to_its_new_place() -> None:
    heap = PodHeap(priority_sort)
    changed = waiting("a")
    heap.add(changed)
    heap.add(waiting("b", priority=5))
    changed.pod_info = PodInfo(pod("a", priority=9))
    heap.reorder(changed)

    assert names(heap) == ["a", "b"]


def test_a_pod_whose_key_did_not_change_keeps_its_place_among_equals() -> None:
    heap = PodHeap(priority_sort)
    changed = waiting("a")
    heap.add(changed)
    heap.add(waiting("b"))
    changed.pod_info = PodInfo(pod("a", labels={"app": "web"}))
    heap.reorder(changed)

    assert names(heap) == ["a", "b"]


def test_what_is_not_there_is_none() -> None:
    heap = PodHeap(priority_sort)

    assert (heap.peek(), heap.pop(), heap.get("default/a"), heap.remove("default/a")) == (None,) * 4


operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "remove", "pop"]), st.integers(0, 4), st.integers(0, 3)
    ),
    min_size=10,
    max_size=100,
)


@given(operations)
def test_it_behaves_as_a_sorted_list(steps: list[tuple[str, int, int]]) -> None:
    heap = PodHeap(priority_sort)
    model: dict[str, tuple[int, int]] = {}
    for number, (step, which, priority) in enumerate(steps):
        name = f"p{which}"
        if step == "add":
            heap.add(waiting(name, priority=priority))
            model[name] = (-priority, number)
        elif step == "remove":
            removed = heap.remove(f"default/{name}")
            assert (removed is not None) == (model.pop(name, None) is not None)
        else:
            popped = heap.pop()
            first = min(model, key=lambda name: model[name], default=None)
            assert (popped and popped.pod.metadata.name) == first
            model.pop(first or "", None)
    heap.check_invariants()
    assert names(heap) == sorted(model, key=lambda name: model[name])


def test_stale_entries_do_not_pile_up() -> None:
    heap = PodHeap(priority_sort)
    heap.add(waiting("a"))
    for _ in range(1000):
        heap.add(waiting("b"))

    assert len(heap._heap) < 100
    assert names(heap) == ["a", "b"]
