"""What a HorizontalPodAutoscaler may say."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.schemas import checks

AUTOSCALERS = find("autoscaling", "v2", "horizontalpodautoscalers")
V1 = find("autoscaling", "v1", "horizontalpodautoscalers")


def autoscaler(**spec: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    given = {"scaleTargetRef": target, "maxReplicas": 5, **spec}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": given}


def resource(**target: Any) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def complaints(obj: Object, kind: Any = AUTOSCALERS) -> list[str]:
    kind.strategy.default(obj)
    return [str(each) for each in kind.strategy.validate(obj, None)]


WELL = resource(type="Utilization", averageUtilization=50)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="with defaults"),
        pytest.param({"metrics": [WELL]}, id="a resource"),
        pytest.param({"behavior": {}}, id="a behavior of defaults"),
        pytest.param(
            {"behavior": {"scaleUp": {"tolerance": "0", "selectPolicy": "Disabled"}}},
            id="no scaling up",
        ),
        pytest.param(
            {
                "metrics": [
                    {
                        "type": "Pods",
                        "pods": {
                            "metric": {"name": "rps"},
                            "target": {"type": "AverageValue", "averageValue": "10"},
                        },
                    }
                ]
            },
            id="a custom metric",
        ),
    ],
)
def test_what_is_well(spec: Any) -> None:
    assert complaints(autoscaler(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"minReplicas": 0},
            ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"],
            id="none at least",
        ),
        pytest.param(
            {"maxReplicas": 0},
            [
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to "
                "`minReplicas`",
            ],
            id="none at most",
        ),
        pytest.param(
            {"minReplicas": 6},
            ["spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"],
            id="fewer at most than at least",
        ),
        pytest.param(
            {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a/b"}},
            ["spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"],
            id="a name that is none",
        ),
        pytest.param(
            {"scaleTargetRef": {"apiVersion": "apps/v1", "name": "web", "kind": ""}},
            ["spec.scaleTargetRef.kind: Required value"],
            id="no kind",
        ),
        pytest.param(
            {"scaleTargetRef": {"apiVersion": "v1", "kind": "Deployment", "name": "web"}},
            [
                'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API '
                "group"
            ],
            id="no group",
        ),
        pytest.param(
            {"metrics": [resource(type="Utilization", averageUtilization=0)]},
            [
                "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: "
                "must be greater than 0"
            ],
            id="a target of nothing",
        ),
        pytest.param(
            {"metrics": [resource(type="AverageValue", averageValue="-1")]},
            ['spec.metrics[0].resource.target.averageValue: Invalid value: "-1": must be positive'],
            id="a target below nothing",
        ),
        pytest.param(
            {"metrics": [resource(type="Utilization")]},
            [
                "spec.metrics[0].resource.target.averageUtilization: Required value: "
                "must set either a target raw value or a target utilization"
            ],
            id="no target",
        ),
        pytest.param(
            {"metrics": [{"type": "Pods", "resource": WELL["resource"]}]},
            [
                "spec.metrics[0].pods: Required value: "
                "must populate information for the given metric source",
            ],
            id="another source than it says",
        ),
        pytest.param(
            {"metrics": [{**resource(type="Utilization", averageUtilization=1), "pods": {}}]},
            [
                "spec.metrics[0].pods.target.averageValue: Required value: "
                "must specify a positive target averageValue",
                "spec.metrics[0].pods: Forbidden: must populate the given metric source only",
            ],
            id="two sources: the first is evaluated",
        ),
        pytest.param(
            {"metrics": [{"type": "Gut"}]},
            [
                'spec.metrics[0].type: Unsupported value: "Gut": supported values: '
                '"ContainerResource", "External", "Object", "Pods", "Resource"'
            ]
            * 2,
            id="no such source",
        ),
        pytest.param(
            {
                "behavior": {
                    "scaleDown": {
                        "stabilizationWindowSeconds": 3601,
                        "policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}],
                    }
                }
            },
            [
                "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: "
                "must be less than or equal to 3600",
                "spec.behavior.scaleDown.policies[0].value: Invalid value: 0: "
                "must be greater than zero",
                "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: "
                "must be less than or equal to 1800",
            ],
            id="rules beyond bounds",
        ),
        pytest.param(
            {"behavior": {"scaleUp": {"tolerance": "-1", "selectPolicy": "Most"}}},
            [
                'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Most": '
                'supported values: "Disabled", "Max", "Min"',
                'spec.behavior.scaleUp.tolerance: Invalid value: "-1": '
                "must be greater or equal to zero",
            ],
            id="rules that make no sense",
        ),
    ],
)
def test_what_cannot_be(spec: Any, want: list[str]) -> None:
    assert complaints(autoscaler(**spec)) == want


def test_v1_is_evaluated_as_v2() -> None:
    obj = autoscaler(targetCPUUtilizationPercentage=0)
    assert complaints(obj, V1) == [
        "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: "
        "must be greater than 0"
    ]


@pytest.mark.parametrize(
    "said",
    ["5", "[5]", '{"a": 1}', '[{"type": 5}]', "[", "[" * 100_000, '[{"resource": []}]', "null"],
)
@pytest.mark.parametrize("field", ["metrics", "behavior", "current-metrics", "conditions"])
def test_annotations_that_are_none_of_v2_say_nothing(field: str, said: str) -> None:
    """As in the API server: they come from a client of v1, and must not get into the store."""
    obj = autoscaler()
    obj["metadata"]["annotations"] = {f"autoscaling.alpha.kubernetes.io/{field}": said}
    assert complaints(obj, V1) == []
    stored = V1.to_storage(obj)
    assert checks.misfit(AUTOSCALERS.schema, stored) is None
    assert "annotations" not in stored["metadata"]


def test_nulls_in_annotations_are_read_as_everywhere() -> None:
    obj = autoscaler()
    metrics = '[{"type": null, "resource": {"name": "cpu", "target": {"type": "Value"}}}]'
    obj["metadata"]["annotations"] = {"autoscaling.alpha.kubernetes.io/metrics": metrics}
    stored = V1.to_storage(obj)
    assert stored["spec"]["metrics"][0]["type"] == ""
