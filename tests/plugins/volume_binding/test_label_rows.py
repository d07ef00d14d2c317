"""Rows by label, against trying every node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.selectors import Operator, Requirement
from berth_plugins.volume_binding.label_rows import rows_meeting, rows_with_label
from tests.builders import node
from tests.plugins.evaluating import table

KEYS = ["rack", "size"]
VALUES = ["1", "2", "3"]

some_labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


def is_one_of(operator: Operator) -> st.SearchStrategy[tuple[str, ...]]:
    match operator:
        case Operator.IN | Operator.NOT_IN:
            return st.lists(st.sampled_from(VALUES), min_size=1, max_size=3).map(tuple)
        case Operator.GT | Operator.LT:
            return st.sampled_from(VALUES).map(lambda value: (value,))
        case _:
            return st.just(())


a_requirement = st.sampled_from(list(Operator)).flatmap(
    lambda operator: st.builds(
        Requirement, st.sampled_from(KEYS), st.just(operator), is_one_of(operator)
    )
)


@given(st.lists(some_labels, min_size=1, max_size=6), st.lists(a_requirement, max_size=3))
def test_rows_meeting(labels: list[dict[str, str]], requirements: list[Requirement]) -> None:
    nodes = table(*(node(f"n{i}", labels=of_node) for i, of_node in enumerate(labels)))
    want = [
        nodes.row_of[f"n{i}"]
        for i, of_node in enumerate(labels)
        if all(requirement.matches(of_node.get(requirement.key)) for requirement in requirements)
    ]
    assert rows_meeting(nodes, requirements).tolist() == sorted(want)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("1", ["a", "c"], id="two nodes have it"),
        pytest.param("2", ["b"], id="one has it"),
        pytest.param("3", [], id="none has it"),
    ],
)
def test_rows_with_label(value: str, want: list[str]) -> None:
    nodes = table(
        node("a", labels={"rack": "1"}),
        node("b", labels={"rack": "2"}),
        node("c", labels={"rack": "1"}),
        node("d"),
    )
    assert sorted(nodes.names(rows_with_label(nodes, "rack", value))) == want


def test_rows_follow_the_labels() -> None:
    nodes = table(node("a", labels={"rack": "1"}))
    assert len(rows_with_label(nodes, "rack", "1")) == 1
    nodes.set_node(nodes.row_of["a"], node("a", labels={"rack": "2"}))
    assert len(rows_with_label(nodes, "rack", "1")) == 0
