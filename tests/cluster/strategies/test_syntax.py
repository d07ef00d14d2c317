"""Texts that were good once are good again, and others are not."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from berth.cluster.strategies import syntax

RULES = [
    syntax.dns1123_label,
    syntax.dns1123_subdomain,
    syntax.dns1035_label,
    syntax.label_value,
    syntax.qualified_name,
]


@pytest.mark.parametrize("rule", RULES)
def test_the_second_answer_is_the_first(rule: Callable[[str], list[str]]) -> None:
    @given(st.text(st.sampled_from("aA1-._/"), max_size=5) | st.just("a" * 64) | st.just("a" * 254))
    @example("a.b/c")
    def is_told(text: str) -> None:
        first = rule(text)
        first_copy = list(first)
        first.append("somebody's own")
        assert rule(text) == first_copy

    is_told()


def test_what_is_remembered_is_bounded() -> None:
    names = [f"name-{number}" for number in range(2 * syntax.MOST_GOOD)]
    assert not any(map(syntax.dns1123_label, names))
    assert not any(map(syntax.dns1123_label, names))
