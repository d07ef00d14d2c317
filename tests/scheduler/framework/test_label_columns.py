"""Labels of nodes that come, change and go, as ids of values."""

from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.framework.label_columns import LabelColumns
from berth.scheduler.framework.node_table import NodeTable
from tests.builders import node, taint

KEY = "k"
names = st.sampled_from(["n1", "n2", "n3", "n4"])
values = st.sampled_from(["", "a", "b", "c", None])


def labels(value: str | None) -> dict[str, str]:
    return {} if value is None else {KEY: value}


@given(st.lists(st.tuples(names, st.booleans(), values), max_size=40), st.integers(0, 40))
def test_ids_tell_values_apart_whatever_happened_before(
    steps: list[tuple[str, bool, str | None]], asked_at: int
) -> None:
    table = NodeTable()
    want: dict[str, str | None] = {}
    for number, (name, is_there, value) in enumerate(steps):
        if number == asked_at:
            table.labels.ids(KEY)  # from now on there is a column
        if is_there and name in want:
            table.set_node(table.row_of[name], node(name, labels=labels(value)))
        elif is_there:
            table.add_node(node(name, labels=labels(value)))
        elif name in want:
            table.remove_node(table.row_of[name])
        want.pop(name, None)
        if is_there:
            want[name] = value

    ids, by_id = table.labels.ids(KEY), table.labels.values(KEY)
    assert {name: by_id[ids[row]] for name, row in table.row_of.items()} == want
    for value in ("", "a", "b", "c"):
        rows = {row for name, row in table.row_of.items() if want[name] == value}
        assert set(table.labels.is_any_of(KEY, [value]).nonzero()[0].tolist()) == rows
        value_id = table.labels.id(KEY, value)
        assert (value_id is not None) == bool(rows)
        assert all(ids[row] == value_id for row in rows)
    lacking = {row for name, row in table.row_of.items() if want[name] is None}
    assert {row for row in table.row_of.values() if not ids[row]} == lacking


def test_values_that_are_gone_take_no_room() -> None:
    table = NodeTable()
    table.labels.ids("host")
    for number in range(1_000):
        row = table.add_node(node(f"n{number}", labels={"host": f"n{number}"}))
        if number >= 3:
            table.remove_node(table.row_of[f"n{number - 3}"])
        assert table.labels.values("host")[table.labels.ids("host")[row]] == f"n{number}"

    assert len(table.labels.values("host")) <= 1 + 4


def test_taints_that_are_gone_take_no_room() -> None:
    table = NodeTable()
    row = table.add_node(node("n"))
    part = table.take([row])
    for number in range(100):  # as an autoscaler puts the time into a taint
        table.set_node(row, node("n", taints=[taint("to-be-deleted", value=str(number))]))
        assert [t.value for t in table.taint_sets[table.taint_set[row]]] == [str(number)]
    part.labels = LabelColumns(part.nodes)
    part.set_node(0, node("n", taints=[taint("other")]))

    assert len(table.taint_sets) <= 3
    assert [t.key for t in table.taint_sets[table.taint_set[row]]] == ["to-be-deleted"]
    table.remove_node(row)
    assert set(table.taint_sets) == {()}
