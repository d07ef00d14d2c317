"""Which group grows if several would help."""

import random

import pytest

from berth.tools.autoscaler.expanders import GIB, Option, best_option
from tests.tools.autoscaler.planning import group

SMALL = Option(
    group("small", cpu="2", memory="8Gi", price=0.1, priority=1), 4, ["a"] * 8, 8, 8 * GIB
)
LARGE = Option(
    group("large", cpu="16", memory="64Gi", price=0.5, priority=5), 1, ["a"] * 9, 9, 9 * GIB
)
EVEN = Option(
    group("even", cpu="4", memory="16Gi", price=0.2, priority=5), 2, ["a"] * 8, 8, 8 * GIB
)


def chosen(expander: str, *options: Option, seed: int = 1) -> str:
    found = best_option(options, expander.split(","), rng=random.Random(seed))
    assert found is not None
    return found.group.name


@pytest.mark.parametrize(
    ("expander", "name"),
    [
        pytest.param("least-waste", "small", id="least-waste: most of cpu and memory is requested"),
        pytest.param("most-pods", "large", id="most-pods"),
        pytest.param("least-nodes", "large", id="least-nodes"),
        pytest.param("price", "small", id="price: least for what the pods are worth"),
        pytest.param("priority", "large", id="priority: the highest"),
        pytest.param("priority,most-pods", "large", id="the next expander decides among equals"),
    ],
)
def test_the_best_option(expander: str, name: str) -> None:
    options = [SMALL, LARGE] if "," not in expander else [SMALL, EVEN, LARGE]
    assert chosen(expander, *options) == name


@pytest.mark.parametrize("expander", ["random", "least-nodes", "priority,random"])
def test_ties_are_broken_randomly(expander: str) -> None:
    options = [Option(group(name), 1, ["a"], 1, GIB) for name in "abc"]
    assert {chosen(expander, *options, seed=seed) for seed in range(20)} == set("abc")


def test_without_options_there_is_none() -> None:
    assert best_option([], ["price"], rng=random.Random(1)) is None
