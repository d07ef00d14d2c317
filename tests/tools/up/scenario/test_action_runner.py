"""Taints as ``kubectl taint`` writes them."""

import pytest

from berth.tools.up.scenario.action_runner import tainted

OLD = [{"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("c:NoSchedule", [*OLD, {"key": "c", "effect": "NoSchedule"}], id="a new one"),
        pytest.param(
            "a=2:NoSchedule",
            [OLD[1], {"key": "a", "value": "2", "effect": "NoSchedule"}],
            id="another value",
        ),
        pytest.param(
            "a=1:NoExecute",
            [*OLD, {"key": "a", "value": "1", "effect": "NoExecute"}],
            id="another effect is another taint",
        ),
        pytest.param("a:NoSchedule-", [OLD[1]], id="removed by key and effect"),
        pytest.param("b-", [OLD[0]], id="removed by key"),
    ],
)
def test_taints(text: str, want: list[dict[str, str]]) -> None:
    assert tainted(OLD, text) == want


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("c-", "taint 'c-' not found", id="nothing to remove"),
        pytest.param("a:NoExecute-", "taint 'a:NoExecute-' not found", id="another effect"),
        pytest.param("c=d", "taint 'c=d': an effect is needed", id="no effect"),
    ],
)
def test_taints_that_cannot_be(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tainted(OLD, text)
