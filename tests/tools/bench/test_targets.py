"""Targets are those of figures that exist."""

import pytest

from berth.tools.bench.steps import STEPS
from berth.tools.bench.targets import TARGETS, target


def test_every_bench_with_targets_exists() -> None:
    assert TARGETS.keys() <= STEPS.keys()


@pytest.mark.parametrize(
    ("name", "label", "nodes", "want"),
    [
        pytest.param("steady", "create to bound, p50", 5_000, 10, id="of the default size"),
        pytest.param("steady", "create to bound, p50", 100, None, id="another size has none"),
        pytest.param("steady", "create to bound, max", 5_000, None, id="another figure has none"),
        pytest.param(
            "scale",
            "plain, all requests equal, replicas, nodes=130000, pods=10000",
            [1_000, 130_000],
            400,
            id="of a size that the label names",
        ),
        pytest.param("cluster", "idle", 5_000, None, id="a bench without targets"),
    ],
)
def test_target(name: str, label: str, nodes: object, want: float | None) -> None:
    assert target(name, label, nodes) == want
