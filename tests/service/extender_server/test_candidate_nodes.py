"""Questions that name many nodes, which come and go between one and the next."""

from berth.scheduler.framework.node_table import NodeTable
from berth.service.extender_server.candidate_nodes import MANY, NO_ROW, named
from tests.builders import node


def table(count: int) -> NodeTable:
    made = NodeTable()
    for i in range(count):
        made.add_node(node(f"n{i}"))
    return made


def test_many_names_are_found_in_their_order() -> None:
    names = [f"n{i}" for i in reversed(range(MANY))]

    asked = named(table(MANY), [*names, "unheard-of"])

    assert asked.rows.tolist() == [*reversed(range(MANY)), NO_ROW]


def test_nodes_that_come_and_go_are_noticed() -> None:
    nodes = table(MANY)
    names = [*(f"n{i}" for i in range(MANY)), "late"]
    assert named(nodes, names).rows.tolist() == [*range(MANY), NO_ROW]

    nodes.remove_node(0)
    row = nodes.add_node(node("late"))

    assert named(nodes, names).rows.tolist() == [NO_ROW, *range(1, MANY), row]
