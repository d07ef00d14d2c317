"""Test cases of ``dra``: pods that wait for devices."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from berth.tools.bench.scheduler_perf.device_templates import (
    FIRST_AVAILABLE,
    SEVEN,
    TWO_OF_ONE_SLICE,
    TWO_SHARES,
    allocated,
    backtracking_counters,
    backtracking_devices,
    claim,
    claim_name,
    claim_template,
    device_class,
    empty_class,
    exactly,
    extended_resource_class,
    node_name,
    node_with_driver,
    partition_claim,
    partitionable_counters,
    partitions,
    pod_with,
    pod_with_claim_template,
    pod_with_extended_resource,
    pool_name,
    shareable_class,
    shareable_device,
    slice_of,
)
from berth.tools.bench.scheduler_perf.operations import (
    INITIAL,
    MEASURED,
    CreateAny,
    CreateNodes,
    CreatePods,
    CreateSteadily,
    Operation,
    UpdateAny,
    measured_pods,
)
from berth.tools.bench.scheduler_perf.templates import PREFIX, Object, Template
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload

RESOURCE_API: Final = "/apis/resource.k8s.io/v1"
SLICES: Final = RESOURCE_API + "/resourceslices"
CLASSES: Final = RESOURCE_API + "/deviceclasses"
CLAIMS: Final = RESOURCE_API + "/namespaces/{namespace}/resourceclaims"
CLAIM_TEMPLATES: Final = RESOURCE_API + "/namespaces/{namespace}/resourceclaimtemplates"
PODS_PER_CLAIM: Final = 5
"""That share a claim in SchedulingWithResourceClaim."""
AT_A_TIME: Final = 10
"""Pods of a steady state, unless the workload says how many."""


def _resource_claim_template(
    nodes_with_dra: int,
    nodes_without_dra: int,
    init_pods: int,
    measure_pods: int,
    max_claims_per_node: int,
) -> Iterator[Operation]:
    """Measure pods that have a claim each, until all devices are in use."""
    yield from _nodes(nodes_with_dra, nodes_without_dra)
    yield from _devices(nodes_with_dra, max_claims_per_node)
    yield CreateAny(CLAIM_TEMPLATES, claim_template(exactly()), namespace=INITIAL)
    yield CreatePods(init_pods, pod_with_claim_template)
    yield CreateAny(CLAIM_TEMPLATES, claim_template(exactly()), namespace=MEASURED)
    yield measured_pods(measure_pods, pod_with_claim_template)


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
    yield from _nodes(nodes_with_dra, nodes_without_dra)
    yield from _devices(nodes_with_dra, max_claims_per_node)
    yield CreateAny(CLAIMS, claim, init_claims, namespace=INITIAL)
    yield CreatePods(init_pods, _pod_with_shared_claim)
    yield CreateAny(CLAIMS, claim, measure_claims, namespace=MEASURED)
    yield measured_pods(measure_pods, _pod_with_shared_claim)


def _steady_state(
    spec: Object,
    nodes_with_dra: int,
    nodes_without_dra: int,
    init_claims: int,
    measure_pods: int,
    max_claims_per_node: int,
) -> Iterator[Operation]:
    """Measure pods that come and go while *init_claims* devices are in use.

    *spec* is that of their claims.
    """

    def device(n: int) -> Object:
        pool, instance = n % nodes_with_dra, n // nodes_with_dra
        return allocated(node_name(pool), f"instance-{instance}")

    yield from _nodes(nodes_with_dra, nodes_without_dra)
    yield CreateAny(CLASSES, empty_class)
    yield from _devices(nodes_with_dra, max_claims_per_node)
    yield CreateAny(CLAIMS, claim, init_claims, namespace=INITIAL)
    yield _allocate(init_claims, device)
    yield from _pods_that_come_and_go(spec, measure_pods)


def _partitions(
    nodes_with_dra: int,
    nodes_without_dra: int,
    resource_slices: int,
    init_claims: int,
    measure_pods: int,
    rounds: int,
) -> Iterator[Operation]:
    """Measure pods that need two partitions of a device of which one is in use."""
    yield from _nodes(nodes_with_dra, nodes_without_dra)
    yield CreateAny(SLICES, partitionable_counters, resource_slices)
    yield CreateAny(SLICES, partitions, resource_slices)
    yield CreateAny(CLASSES, device_class)
    yield CreateAny(CLAIMS, partition_claim, init_claims, namespace=INITIAL)
    yield _allocate(init_claims, lambda n: allocated(pool_name(n), "device-2-counters-1"))
    yield from _pods_that_come_and_go(TWO_OF_ONE_SLICE, measure_pods, rounds)


def _backtracking(
    nodes_with_dra: int,
    nodes_without_dra: int,
    resource_slices: int,
    measure_pods: int,
    rounds: int,
) -> Iterator[Operation]:
    """Measure pods that get seven of eight devices, but not the first one."""
    yield from _nodes(nodes_with_dra, nodes_without_dra)
    yield CreateAny(SLICES, backtracking_counters, resource_slices)
    yield CreateAny(SLICES, backtracking_devices, resource_slices)
    yield CreateAny(CLASSES, device_class)
    yield from _pods_that_come_and_go(SEVEN, measure_pods, rounds)


def _consumable_capacity(
    nodes_with_dra: int,
    nodes_without_dra: int,
    resource_slices: int,
    measure_pods: int,
    rounds: int,
    max_claims_per_node: int,
) -> Iterator[Operation]:
    """Measure pods that take half of the memory of a device twice."""
    yield from _nodes(nodes_with_dra, nodes_without_dra)
    yield CreateAny(SLICES, slice_of(max_claims_per_node), nodes_with_dra)
    yield CreateAny(SLICES, shareable_device, resource_slices)
    yield CreateAny(CLASSES, shareable_class)
    yield from _pods_that_come_and_go(TWO_SHARES, measure_pods, rounds)


def _extended_resource(
    classes: int,
    nodes_with_dra: int,
    nodes_without_dra: int,
    init_pods: int,
    measure_pods: int,
    max_claims_per_node: int,
) -> Iterator[Operation]:
    """Measure pods that get a device for an extended resource of one of the classes."""
    yield from _nodes(nodes_with_dra, nodes_without_dra)
    yield CreateAny(SLICES, slice_of(max_claims_per_node), nodes_with_dra)
    yield CreateAny(CLASSES, extended_resource_class, classes)
    yield CreatePods(init_pods, lambda n: pod_with_extended_resource(n % classes))
    yield measured_pods(measure_pods, lambda n: pod_with_extended_resource(n % classes))


# What several have in common.


def _nodes(with_dra: int, without_dra: int) -> Iterator[Operation]:
    yield CreateNodes(without_dra)
    yield CreateNodes(with_dra, node_with_driver)


def _devices(nodes: int, devices: int) -> Iterator[Operation]:
    yield CreateAny(SLICES, slice_of(devices), nodes)
    yield CreateAny(CLASSES, device_class)


def _allocate(claims: int, patch: Template) -> Operation:
    path = CLAIMS.format(namespace=PREFIX + INITIAL)
    return UpdateAny(claims, lambda n: f"{path}/{claim_name(n)}/status", patch, per_second=0)


def _pods_that_come_and_go(spec: Object, measure_pods: int, rounds: int = 0) -> Iterator[Operation]:
    """Have so many pods in each round; without *rounds*, so many in all."""
    yield CreateAny(CLAIM_TEMPLATES, claim_template(spec), namespace=MEASURED)
    if rounds:
        yield CreateSteadily(measure_pods, rounds, pod_with_claim_template)
    else:
        yield CreateSteadily(AT_A_TIME, measure_pods // AT_A_TIME, pod_with_claim_template)


def _pod_with_shared_claim(n: int) -> Object:
    return pod_with(resourceClaimName=claim_name(n // PODS_PER_CLAIM))


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
    "SteadyStateClusterResourceClaimTemplate": PerfCase(
        partial(_steady_state, exactly()),
        {
            "fast": Workload((1, 1, 0, 100, 10)),
            "empty_100nodes": Workload((100, 0, 0, 1_000, 10)),
            "empty_200nodes": Workload((200, 0, 0, 1_000, 10)),
            "empty_500nodes": Workload((500, 0, 0, 1_000, 10), 64),
            "half_100nodes": Workload((100, 0, 500, 1_000, 10)),
            "half_200nodes": Workload((200, 0, 1_000, 1_000, 10)),
            "half_500nodes": Workload((500, 0, 2_500, 1_000, 10), 60),
            "full_100nodes": Workload((100, 0, 990, 1_000, 10)),
            "full_200nodes": Workload((200, 0, 1_990, 1_000, 10)),
            "full_500nodes": Workload((500, 0, 4_990, 1_000, 10), 60),
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
    "SteadyStateClusterResourceClaimTemplateFirstAvailable": PerfCase(
        partial(_steady_state, FIRST_AVAILABLE), {"fast": Workload((1, 1, 0, 100, 10))}
    ),
    "SteadyStateClusterResourceClaimTemplatePartitionable": PerfCase(
        _partitions,
        {
            "fast": Workload((1, 1, 10, 10, 10, 10)),
            "2000pods_100nodes": Workload((100, 0, 2_000, 2_000, 2_000, 1)),
        },
    ),
    "SteadyStateClusterResourceClaimTemplatePartitionableBacktracking": PerfCase(
        _backtracking, {"fast": Workload((1, 1, 1, 1, 100))}
    ),
    "SteadyStateClusterResourceClaimTemplateConsumableCapacity": PerfCase(
        _consumable_capacity,
        {
            "fast": Workload((1, 1, 1, 1, 100, 2)),
            "2000pods_100nodes": Workload((100, 0, 2_000, 2_000, 1, 20)),
        },
    ),
    "ExtendedResource": PerfCase(_extended_resource, {"fast": Workload((10, 1, 1, 0, 10, 10))}),
    "ExtendedResource_25Classes": PerfCase(
        _extended_resource,
        {
            "2000pods_200nodes": Workload((25, 200, 0, 1_000, 1_000, 10)),
            "5000pods_500nodes": Workload((25, 500, 0, 2_500, 2_500, 10), 197),
        },
    ),
    "ExtendedResource_50Classes": PerfCase(
        _extended_resource,
        {
            "2000pods_200nodes": Workload((50, 200, 0, 1_000, 1_000, 10)),
            "5000pods_500nodes": Workload((50, 500, 0, 2_500, 2_500, 10), 195),
        },
    ),
}
