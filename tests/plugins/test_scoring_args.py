"""The args of NodeResourcesFit and NodeResourcesBalancedAllocation, and normalising."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from berth.scheduler.framework.interface import PluginArgs
from berth.scheduler.framework.scoring import default_normalize
from berth_plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocationArgs
from berth_plugins.node_resources_fit import NodeResourcesFitArgs


def strategy(**fields: object) -> dict[str, object]:
    return {"scoringStrategy": fields}


def ratio(*points: tuple[int, int]) -> dict[str, object]:
    shape = [{"utilization": x, "score": y} for x, y in points]
    return strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(
            {"ignoredResources": ["ok.io/x", "a b"]},
            r"ignoredResources\[1\]: Invalid value: 'a b'",
            id="an ignored resource is no name",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["a/b"]},
            r"ignoredResourceGroups\[0\]: Invalid value: 'a/b': must not contain",
            id="a group has no slash",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["-"]},
            r"ignoredResourceGroups\[0\]: Invalid value: '-'",
            id="a group is no name",
        ),
        pytest.param(strategy(type="Best"), "scoringStrategy.type", id="an unknown strategy"),
        pytest.param(
            strategy(resources=[{"name": "cpu"}, {"name": "memory", "weight": 101}]),
            r"resources\[1\]\.weight: Invalid value: 101",
            id="a weight is too large",
        ),
        pytest.param(
            strategy(resources=[{"name": "cpu", "weight": -1}]),
            r"resources\[0\]\.weight: Invalid value: -1",
            id="a weight is negative",
        ),
        pytest.param(
            strategy(type="RequestedToCapacityRatio"),
            "requestedToCapacityRatio: Required",
            id="a curve is missing",
        ),
        pytest.param(
            strategy(
                requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 0}]},
            ),
            "requestedToCapacityRatio: Forbidden",
            id="a curve is too much",
        ),
        pytest.param(ratio(), "shape: at least one point", id="a curve without points"),
        pytest.param(
            ratio((0, 0), (50, 5), (50, 6)),
            r"shape\[2\]\.utilization: Invalid value: 50",
            id="utilization must increase",
        ),
        pytest.param(ratio((101, 0)), r"shape\.0\.utilization", id="utilization beyond 100"),
        pytest.param(ratio((0, 11)), r"shape\.0\.score", id="a score beyond 10"),
        pytest.param({"ignoredThings": []}, "ignoredThings", id="an unknown field"),
    ],
)
def test_wrong_fit_args_are_named(args: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NodeResourcesFitArgs.model_validate_json(json.dumps(args))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(
            {"resources": [{"name": "cpu", "weight": 2}]},
            r"resources\[0\]\.weight: Invalid value: 2",
            id="weights must be 1",
        ),
        pytest.param(
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            r"resources\[1\]\.name: Duplicate value: 'cpu'",
            id="a resource is there twice",
        ),
    ],
)
def test_wrong_balanced_args_are_named(args: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NodeResourcesBalancedAllocationArgs.model_validate_json(json.dumps(args))


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({}, id="nothing is said"),
        pytest.param(strategy(type="LeastAllocated"), id="no resources"),
        pytest.param(strategy(resources=[]), id="an empty list of resources"),
        pytest.param(
            strategy(resources=[{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]),
            id="the default, written out",
        ),
    ],
)
def test_fit_defaults(args: dict[str, object]) -> None:
    assert NodeResourcesFitArgs.model_validate_json(json.dumps(args)) == NodeResourcesFitArgs()


@pytest.mark.parametrize("args", ['{"resources": []}', "{}"])
def test_balanced_defaults(args: str) -> None:
    model = NodeResourcesBalancedAllocationArgs
    assert model.model_validate_json(args) == model()


@pytest.mark.parametrize("model", [NodeResourcesFitArgs, NodeResourcesBalancedAllocationArgs])
def test_head_fields_are_allowed(model: type[PluginArgs]) -> None:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": model.__name__}
    assert model.model_validate_json(json.dumps(head)).kind == model.__name__


def test_a_weight_of_zero_means_one() -> None:
    args = NodeResourcesFitArgs.model_validate_json(
        json.dumps(strategy(resources=[{"name": "cpu", "weight": 0}, {"name": "memory"}]))
    )
    assert [r.effective_weight for r in args.scoring_strategy.resources] == [1, 1]


@given(st.lists(st.integers(0, 10**6)), st.booleans())
def test_normalising_follows_the_rule(scores: list[int], reverse: bool) -> None:
    """Spec §5, DefaultNormalize."""
    highest = max(scores, default=0)
    if highest == 0:
        want = [100 if reverse else score for score in scores]
    else:
        stretched = [100 * score // highest for score in scores]
        want = [100 - score if reverse else score for score in stretched]
    got = default_normalize(np.array(scores, np.int64), reverse=reverse)
    assert got.tolist() == want
