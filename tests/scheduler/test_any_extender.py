"""Whatever extenders answer, and whatever happens while they do, rooms and rules are kept."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.asking import entry, harness

NODES = [f"n{i}" for i in range(4)]
PODS = [f"p{i}" for i in range(6)]
NODE = st.sampled_from(NODES)


@settings(max_examples=40)
@given(st.data())
async def test_no_node_is_overcommitted_and_every_pod_is_where_extenders_wanted_it(
    data: st.DataObject,
) -> None:
    made: Harness
    wanted: dict[str, set[str]] = {name: set() for name in PODS}
    fillers = iter(range(1_000))

    def fill(name: str) -> None:
        row = made.cache.table.row_of.get(name)
        if row is not None and made.cache.table.requested[0, row] <= 1_000:
            made.put(pod(f"filler-{next(fillers)}", cpu=1, node=name))

    def add(name: str) -> None:
        made.put(node(name, cpu=2))

    def remove(name: str) -> None:
        if name in made.cache.table.row_of:
            made.delete(node(name))

    def answer(asked: Any) -> Any:
        happens = data.draw(st.lists(st.tuples(st.sampled_from([fill, add, remove]), NODE)))
        for change, name in happens:
            change(name)
        left = data.draw(st.sets(st.sampled_from(asked["NodeNames"])))
        wanted[asked["Pod"]["metadata"]["name"]] |= left
        return {"NodeNames": sorted(left)}

    def prefer(asked: Any) -> Any:
        score = data.draw(st.integers(-10, 10))
        return [{"Host": name, "Score": score} for name in asked["NodeNames"]]

    made, _ = harness(
        {"/filter": answer, "/prioritize": prefer},
        entry(filterVerb="filter", prioritizeVerb="prioritize", weight=1),
    )
    made.put(*(node(name, cpu=2) for name in NODES[:3]), *(pod(name, cpu=1) for name in PODS))
    for _ in range(3):
        await made.until_idle()
        made.clock.advance(20)
        made.queue.flush_backoff_completed()

    table = made.cache.table
    for row in table.row_of.values():
        assert table.requested[0, row] <= table.allocatable[0, row]
    placed = {name: at for name, at in made.placements().items() if name in wanted}
    assert all(at in wanted[name] for name, at in placed.items())
    assert not made.queue.in_flight_counts()
