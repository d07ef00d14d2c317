"""Objects of dynamic resource allocation: functions that make the n-th one."""

from collections.abc import Mapping
from typing import Any, Final

from berth.tools.bench.scheduler_perf.templates import CONTAINER, Object, Template, light_pod, node

DRIVER: Final = "test-driver.cdi.k8s.io"
CLASS: Final = "test-class"
EMPTY_CLASS: Final = "no-devices-class"
CLAIM_TEMPLATE: Final = "test-claim-template"
SLICE: Final = "dra.example.com/slice"
"""An attribute that tells the slice of a device."""
HAS_DRIVER: Final = "node-with-dra"
"""A label of nodes."""
ONE: Final = {"value": "1"}


def node_with_driver(n: int) -> Object:
    return node(node_name(n), labels={HAS_DRIVER: "true"})


def node_name(n: int) -> str:
    return f"scheduler-perf-dra-{n}"


# Devices.


def slice_of(devices: int) -> Template:
    """Return a template of slices with so many equal devices, each slice for a node."""

    def template(n: int) -> Object:
        offered = [{"name": f"instance-{device}"} for device in range(devices)]
        return _slice(node_name(n), node_name(n), nodeName=node_name(n), devices=offered)

    return template


def partitionable_counters(n: int) -> Object:
    """Make the slice with the counters of :func:`partitions`."""
    counters = {f"counter{i}": ONE for i in range(1, 5)}
    sets = [{"name": "counter-set", "counters": counters}]
    return _counters(n, sets)


def partitions(n: int) -> Object:
    """Make a slice with two devices of two counters each, and four devices of one counter."""
    counters = {
        "device-2-counters-1": (1, 2),
        "device-2-counters-2": (3, 4),
        **{f"device-1-counter-{i}": (i,) for i in range(1, 5)},
    }
    devices = [
        {
            "name": name,
            "attributes": {
                "preallocate": {"bool": name == "device-2-counters-1"},
                SLICE: {"int": n},
            },
            "capacity": {"counters": {"value": str(len(taken))}},
            "consumesCounters": [
                {"counterSet": "counter-set", "counters": {f"counter{i}": ONE for i in taken}}
            ],
        }
        for name, taken in counters.items()
    ]
    return _devices(n, devices)


def backtracking_counters(n: int) -> Object:
    """Make the slice with the counters of :func:`backtracking_devices`."""
    sets = [
        {"name": "counter-set-for-cpu", "counters": {f"cpu{i}": ONE for i in range(1, 9)}},
        {"name": "counter-set-for-mem", "counters": {"mem": {"value": "70Gi"}}},
    ]
    return _counters(n, sets)


def backtracking_devices(n: int) -> Object:
    """Make a slice with eight devices, of which seven have memory enough only without the first."""
    devices = [
        {
            "name": f"device-{i}",
            "consumesCounters": [
                {"counterSet": "counter-set-for-cpu", "counters": {f"cpu{i}": ONE}},
                {
                    "counterSet": "counter-set-for-mem",
                    "counters": {"mem": {"value": "20Gi" if i == 1 else "10Gi"}},
                },
            ],
        }
        for i in range(1, 9)
    ]
    return _devices(n, devices)


def shareable_device(n: int) -> Object:
    """Make a slice with one device whose memory several claims share."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    device = {
        "name": "shareable-device",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
    }
    return _slice(pool_name(n), pool_name(n), nodeSelector=_WITH_DRIVER, devices=[device])


def pool_name(n: int) -> str:
    return f"resourceslice-{n}"


def _counters(n: int, sets: list[Object]) -> Object:
    name = f"{pool_name(n)}-countersets"
    return _slice(name, pool_name(n), 2, nodeSelector=_WITH_DRIVER, sharedCounters=sets)


def _devices(n: int, devices: list[Object]) -> Object:
    name = f"{pool_name(n)}-devices"
    return _slice(name, pool_name(n), 2, nodeSelector=_WITH_DRIVER, devices=devices)


_WITH_DRIVER: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": HAS_DRIVER, "operator": "In", "values": ["true"]}]}
    ]
}


def _slice(name: str, pool: str, slices: int = 1, **spec: Any) -> Object:
    pool_of = {"name": pool, "generation": 1, "resourceSliceCount": slices}
    return {"metadata": {"name": name}, "spec": {"driver": DRIVER, "pool": pool_of, **spec}}


# Classes.


def device_class(_: int) -> Object:
    return _class(CLASS, _IS_OURS)


def empty_class(_: int) -> Object:
    """Make a class that no device is of."""
    return _class(EMPTY_CLASS, 'device.driver == "no-such-driver.cdi.k8s.io"')


def shareable_class(_: int) -> Object:
    return _class(CLASS, f"{_IS_OURS} && device.allowMultipleAllocations == true")


def extended_resource_class(n: int) -> Object:
    return _class(f"{CLASS}-{n}", _IS_OURS, extendedResourceName=_resource(n))


_IS_OURS: Final = f'device.driver == "{DRIVER}"'


def _class(name: str, expression: str, **more: str) -> Object:
    selectors = [{"cel": {"expression": expression}}]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **more}}


def _resource(n: int) -> str:
    return f"example.com/gpu-{n}"


# Claims.


def exactly(**more: Any) -> Object:
    """Make the spec of a claim with one request."""
    return {"devices": {"requests": [_request(0, **more)]}}


def _request(n: int, **more: Any) -> Object:
    return {"name": f"req-{n}", "exactly": {"deviceClassName": CLASS, **more}}


FIRST_AVAILABLE: Final[Object] = {
    "devices": {
        "requests": [
            {
                "name": "req-0",
                "firstAvailable": [
                    {"name": "sub-0", "deviceClassName": EMPTY_CLASS},
                    {"name": "sub-1", "deviceClassName": CLASS},
                ],
            }
        ]
    }
}
TWO_OF_ONE_SLICE: Final[Object] = {
    "devices": {
        **exactly(count=2)["devices"],
        "constraints": [{"requests": ["req-0"], "matchAttribute": SLICE}],
    }
}
SEVEN: Final = exactly(count=7)
TWO_SHARES: Final[Object] = {
    "devices": {
        "requests": [_request(n, capacity={"requests": {"memory": "40Gi"}}) for n in range(2)]
    }
}


def claim_template(spec: Object) -> Template:
    return lambda _: {"metadata": {"name": CLAIM_TEMPLATE}, "spec": {"spec": spec}}


def claim_name(n: int) -> str:
    return f"test-claim-{n}"


def claim(n: int) -> Object:
    return {"metadata": {"name": claim_name(n)}, "spec": exactly()}


def partition_claim(n: int) -> Object:
    """Make a claim for the first device of :func:`partitions`."""
    of_driver = f"device.capacity['{DRIVER}'].counters.compareTo(quantity('2')) >= 0"
    expression = f"{of_driver} && device.attributes['{DRIVER}'].preallocate"
    return claim(n) | {"spec": exactly(selectors=[{"cel": {"expression": expression}}])}


def allocated(pool: str, device: str) -> Object:
    """Make a patch that gives a claim a device."""
    result = {"request": "req-0", "driver": DRIVER, "pool": pool, "device": device}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


# Pods.


def pod_with(**source: str) -> Object:
    """Make a pod with one claim, where *source* says."""
    container = {**CONTAINER, "resources": {"claims": [{"name": "resource"}]}}
    return light_pod(
        {"containers": [container], "resourceClaims": [{"name": "resource", **source}]}
    )


def pod_with_claim_template(_: int) -> Object:
    return pod_with(resourceClaimTemplateName=CLAIM_TEMPLATE)


def pod_with_extended_resource(n: int) -> Object:
    amounts: Mapping[str, str] = {_resource(n): "1"}
    resources = {"requests": {**amounts}, "limits": {**amounts}}
    return light_pod({"containers": [{**CONTAINER, "resources": resources}]})
