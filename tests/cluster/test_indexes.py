"""Sets of completion indexes as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.indexes import Indexes

NUMBERS = st.sets(st.integers(0, 40))


@given(NUMBERS)
def test_what_is_written_is_read_again(numbers: set[int]) -> None:
    indexes = Indexes.of(numbers)
    assert Indexes.parse(str(indexes)) == indexes
    assert len(indexes) == len(numbers)
    assert {each for each in range(42) if each in indexes} == numbers


@given(NUMBERS, NUMBERS, st.integers(0, 45))
def test_they_are_sets(one: set[int], other: set[int], limit: int) -> None:
    first, second = Indexes.of(one), Indexes.of(other)
    assert first | second == Indexes.of(one | other)
    assert first.count_in(second) == len(one & other)
    assert first.below(limit) == Indexes.of(each for each in one if each < limit)
    missing = [each for each in range(limit) if each not in one]
    assert first.missing(limit, 10) == missing[:10]


@pytest.mark.parametrize(
    ("text", "again"),
    [
        pytest.param("", "", id="none"),
        pytest.param("0,1,2,5", "0-2,5", id="numbers in a row"),
        pytest.param("3,4", "3,4", id="two in a row"),
        pytest.param("0-1999999999", "0-1999999999", id="billions"),
    ],
)
def test_how_they_are_written(text: str, again: str) -> None:
    assert str(Indexes.parse(text)) == again


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a", 'cannot convert string to integer for index: "a"', id="no number"),
        pytest.param("1,,2", 'cannot convert string to integer for index: ""', id="a hole"),
        pytest.param("2,1", "non-increasing order, previous: 2, current: 1", id="backwards"),
        pytest.param("3-2", "non-increasing order, previous: 3, current: 2", id="turned round"),
    ],
)
def test_what_is_not_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Indexes.parse(text)
