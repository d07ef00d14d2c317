"""A node never has two writers, whatever is lost, late or stopped."""

from typing import Any

import pytest

from tests.scheduler.shards.model import Rules, ViolationError, explore


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(Rules(members=2, slots=1, messages=4), id="two members, one slot"),
        pytest.param(Rules(members=3, slots=1, messages=4), id="three members, one slot"),
        pytest.param(
            Rules(members=3, slots=2, messages=3),
            id="three members, two slots",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_no_bind_goes_astray(rules: Rules) -> None:
    assert explore(rules) > 500


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"write_limit": 4}, id="binds leave as late as others take over: no fence"),
        pytest.param({"duration": 2}, id="the duration leaves nothing for skewed clocks"),
        pytest.param({"expels": False}, id="slots are taken from a member that may come back"),
        pytest.param({"returns": True}, id="a member makes its Lease anew once it was expelled"),
        pytest.param({"counts_terms": False}, id="nobody notices that one has scheduled alone"),
        pytest.param({"drains": False}, id="a slot is given with a bind on its way"),
        pytest.param({"holds_by_reading": True}, id="a slot is held because its Lease says so"),
    ],
)
def test_each_rule_is_needed(broken: dict[str, Any]) -> None:
    rules = Rules(members=2, slots=1, messages=4)._replace(**broken)
    with pytest.raises(ViolationError):
        explore(rules)
