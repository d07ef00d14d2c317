"""Numbers of values that come and go."""

from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.framework.value_ids import ValueIds

nodes = st.integers(0, 3)
values = st.sampled_from(["", "a", "b", "c", "d"])


@given(st.lists(st.tuples(nodes, values), max_size=60))
def test_nodes_have_the_same_number_exactly_if_they_have_the_same_value(
    steps: list[tuple[int, str]],
) -> None:
    ids = ValueIds("")
    numbers, want = [0] * 4, [""] * 4
    for node, value in steps:
        numbers[node] = ids.exchange(numbers[node], value)
        want[node] = value

        assert [ids.values[number] for number in numbers] == want
        assert [ids.of(value) for value in want] == numbers
        assert {value for value in "abcd" if ids.of(value) is not None} == set(want) - {""}
        assert len(ids.values) <= 1 + 4 + 1  # a new value comes before the old one goes


def test_a_copy_goes_its_own_way() -> None:
    ids = ValueIds("")
    number = ids.exchange(0, "a")
    twin = ids.copy()
    twin.exchange(twin.exchange(number, "b"), "c")

    assert (ids.values, ids.of("a"), ids.of("b")) == (["", "a"], number, None)
    assert (twin.of("a"), twin.of("b")) == (None, None)
    assert twin.values[twin.of("c") or 0] == "c"
