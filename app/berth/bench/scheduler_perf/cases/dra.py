"""Test cases of ``dra``: pods that wait for devices."""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.bench.scheduler_perf.operations import (
    INITIAL,
    MEASURED,
    CreateAny,
    CreateNodes,
    CreatePods,
    Operation,
    measured_pods,
)
from berth.bench.scheduler_perf.templates import CONTAINER, Object, Template, light_pod, node
from berth.bench.scheduler_perf.test_case import PerfCase, Workload

RESOURCE_API: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = RESOURCE_API + "/namespaces/{namespace}/resourceclaims"
CLAIM_TEMPLATES: Final = RESOURCE_API + "/namespaces/{namespace}/resourceclaimtemplates"
DRIVER: Final = "test-driver.cdi.k8s.io"
CLASS: Final = "test-class"
CLAIM_TEMPLATE: Final = "test-claim-template"
PODS_PER_CLAIM: Final = 5
"""That share a claim in SchedulingWithResourceClaim."""


def _resource_claim_template(
    nodes_with_dra: int,
    nodes_without_dra: int,
    init_pods: int,
    measure_pods: int,
    max_claims_per_node: int,
) -> Iterator[Operation]:
    """Measure pods that have a claim each, until all devices are in use."""
    yield from _cluster(nodes_with_dra, nodes_without_dra, max_claims_per_node)
    yield CreateAny(CLAIM_TEMPLATES, _claim_template, namespace=INITIAL)
    yield CreatePods(init_pods, _pod_with_claim_template)
    yield CreateAny(CLAIM_TEMPLATES, _claim_template, namespace=MEASURED)
    yield measured_pods(measure_pods, _pod_with_claim_template)


def _resource_claim(
    nodes_with_dra: int,
    nodes_without_dra: int,
    init_pods: int,
    init_claims: int,
    measure_pods: int,
    measure_claims: int,
    max_claims_per_node: int,
) -> Iterator[Operation]:
    """Measure pods of which five share a claim."""
    yield from _cluster(nodes_with_dra, nodes_without_dra, max_claims_per_node)
    yield CreateAny(CLAIMS, _claim, init_claims, namespace=INITIAL)
    yield CreatePods(init_pods, _pod_with_claim)
    yield CreateAny(CLAIMS, _claim, measure_claims, namespace=MEASURED)
    yield measured_pods(measure_pods, _pod_with_claim)


def _cluster(with_dra: int, without_dra: int, devices: int) -> Iterator[Operation]:
    yield CreateNodes(without_dra)
    yield CreateNodes(with_dra, lambda n: node(_node_name(n)))
    yield CreateAny(f"{RESOURCE_API}/resourceslices", _slice_of(devices), with_dra)
    yield CreateAny(f"{RESOURCE_API}/deviceclasses", _device_class)


def _node_name(n: int) -> str:
    return f"scheduler-perf-dra-{n}"


def _slice_of(devices: int) -> Template:
    def template(n: int) -> Object:
        name = _node_name(n)
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"instance-{device}"} for device in range(devices)],
        }
        return {"metadata": {"name": name}, "spec": spec}

    return template


def _device_class(_: int) -> Object:
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    return {"metadata": {"name": CLASS}, "spec": {"selectors": selectors}}


def _claim_spec() -> Object:
    return {"devices": {"requests": [{"name": "req-0", "exactly": {"deviceClassName": CLASS}}]}}


def _claim_template(_: int) -> Object:
    return {"metadata": {"name": CLAIM_TEMPLATE}, "spec": {"spec": _claim_spec()}}


def _claim(n: int) -> Object:
    return {"metadata": {"name": f"test-claim-{n}"}, "spec": _claim_spec()}


def _pod_with_claim_template(_: int) -> Object:
    return _pod(resourceClaimTemplateName=CLAIM_TEMPLATE)


def _pod_with_claim(n: int) -> Object:
    return _pod(resourceClaimName=f"test-claim-{n // PODS_PER_CLAIM}")


def _pod(**source: str) -> Object:
    container = {**CONTAINER, "resources": {"claims": [{"name": "resource"}]}}
    return light_pod(
        {"containers": [container], "resourceClaims": [{"name": "resource", **source}]}
    )


CASES: Final[Mapping[str, PerfCase]] = {
    "SchedulingWithResourceClaimTemplate": PerfCase(
        _resource_claim_template,
        {
            "fast": Workload((1, 1, 0, 10, 10)),
            "2000pods_100nodes": Workload((100, 0, 1_000, 1_000, 20)),
            "2000pods_200nodes": Workload((200, 0, 1_000, 1_000, 10)),
            "5000pods_500nodes": Workload((500, 0, 2_500, 2_500, 10), 56),
        },
    ),
    "SchedulingWithResourceClaim": PerfCase(
        _resource_claim,
        {
            "fast": Workload((1, 1, 0, 0, 10, 2, 2)),
            "2000pods_100nodes": Workload((100, 0, 1_000, 200, 1_000, 200, 4)),
            "2000pods_200nodes": Workload((200, 0, 1_000, 200, 1_000, 200, 2)),
            "5000pods_500nodes": Workload((500, 0, 2_500, 500, 2_500, 500, 2)),
        },
    ),
}
