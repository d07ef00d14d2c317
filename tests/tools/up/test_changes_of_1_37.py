"""What 1.37 decides and writes that 1.36 does not, on an embedded cluster of either (1.37 spec)."""

from pathlib import Path
from typing import Any, Final

from tests.tools.up.group_scenarios import (
    LONG,
    Cases,
    Object,
    bound,
    by_release,
    check,
    create,
    nodes,
    pod,
    scenario,
    step,
)
from tests.tools.up.test_gated_features import CLASS, STORAGE, by_capacity

FULL: Final = "0/1 nodes are available: 1 Insufficient cpu."
DEVICES: Final = "resource.k8s.io/v1"
HIGH: Final[Object] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def single(name: str, **spec: Any) -> Object:
    return pod(name, of="", **spec)


def scheduled(name: str, node: str) -> Object:
    return {"pods": {"name": name, "node": node}}


def of_preemption(message: str) -> Cases:
    """What the condition of a pod says whose preemption found a victim."""
    path = '.status.conditions[?(@.type=="PodScheduled")].message'
    slow = single("low")
    slow["metadata"]["annotations"] = {"berth.dev/stop-seconds": "5"}
    steps = [
        step("A pod runs", create(HIGH, slow), expect=[bound(1, of="none")]),
        step(
            "One of high priority preempts it",
            create(single("high", priorityClassName="high")),
            expect=[
                {"objects": {"kind": "Pod", "name": "high", "path": path, "equals": message}},
                {"event": {"reason": "FailedScheduling", "name": "high", "message": message}},
                scheduled("high", "n"),
            ],
        ),
    ]
    return {"N3.1, a pod that preempts": scenario(nodes("n", 1, "1"), gates=(), steps=steps)}


def of_a_missing_driver(*expect: Object) -> Cases:
    """A volume of a driver that keeps pods from nodes without it, and no node has it."""
    driver, *others = STORAGE
    asked = {"storageCapacity": True, "preventPodSchedulingIfMissing": True}
    strict = driver | {"spec": asked}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    only = step("A pod with a volume", create(single("db", volumes=[volume])), expect=[*expect])
    name = "N3.6, a CSI driver that no node has"
    return {
        name: scenario(nodes("large", 1, "4"), gates=(), objects=[strict, *others], steps=[only])
    }


def of_a_gated_pod(*expect: Object) -> Cases:
    """A pod that a scheduler finds gated and nominated when it starts, and one that has room."""
    nominated = {
        "kind": "Pod",
        "name": "gated",
        "patch": {"status": {"nominatedNodeName": "n"}},
        "subresource": "status",
    }
    gated = single(
        "gated", priorityClassName="high", schedulingGates=[{"name": "example.com/wait"}]
    )
    steps = [
        step(
            "A gated pod is nominated",
            {"scheduler": "stop"},
            create(HIGH, gated),
            {"patch": nominated},
            {"scheduler": "start"},
            expect=[{"pods": {"name": "gated", "reason": "SchedulingGated"}}],
        ),
        step("A pod of no priority comes", create(single("low")), expect=[*expect]),
    ]
    return {"N3.8, a gated pod": scenario(nodes("n", 1, "1"), gates=(), steps=steps)}


def slice_of(node: str, *devices: Object, slices: int = 1, **spec: object) -> Object:
    return {
        "apiVersion": DEVICES,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{'counters' if 'sharedCounters' in spec else 'devices'}"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": slices},
            **({"devices": list(devices)} if devices else {}),
            **spec,
        },
    }


def partition(name: str, compatible: str) -> Object:
    """A device that takes one of the parts of a card."""
    counters = {"parts": {"value": "1"}}
    consumed = {"counterSet": "card", "counters": counters, "compatibilityGroups": [compatible]}
    return {"name": name, "consumesCounters": [consumed]}


def rule(device: str, effect: str) -> Object:
    """Taints a device."""
    taint = {"key": "example.com/broken", "effect": effect}
    return {
        "apiVersion": DEVICES,
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {"deviceSelector": {"device": device}, "taint": taint},
    }


def claim(name: str, *requests: str, **devices: object) -> Object:
    asked = [{"name": each, "exactly": {"deviceClassName": "gpu"}} for each in requests]
    return {
        "apiVersion": DEVICES,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": asked, **devices}},
    }


def using(name: str) -> Object:
    """A pod with the claim of its name."""
    return single(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])


def allocated(name: str, path: str, equals: object) -> Object:
    where = f".status.allocation.devices.{path}"
    return {"objects": {"kind": "ResourceClaim", "name": name, "path": where, "equals": equals}}


def of_configuration(*config: Object) -> Cases:
    """What a claim's allocation has of a configuration for both of its requests."""
    opaque = {"driver": "gpu.example.com", "parameters": {"kind": "Mode"}}
    both = claim("both", "a", "b", config=[{"requests": ["a", "b"], "opaque": opaque}])
    written = [{"source": "FromClaim", "opaque": opaque, **each} for each in config]
    only = step(
        "A pod with two devices",
        create(both, using("both")),
        expect=[scheduled("both", "n"), allocated("both", "config", written)],
    )
    devices = slice_of("n", {"name": "gpu-0"}, {"name": "gpu-1"})
    name = "N4.5, a configuration of several requests"
    return {name: scenario(nodes("n", 1, "4"), gates=(), objects=[CLASS, devices], steps=[only])}


def pod_has(name: str, path: str, equals: object, **more: Any) -> Object:
    return {"objects": {"kind": "Pod", "name": name, "path": path, "equals": equals}, **more}


def resize(name: str, cpu: str) -> Object:
    """Has a pod ask for so much in place."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    patch = {"spec": {"containers": [container]}}
    return {"patch": {"kind": "Pod", "name": name, "patch": patch, "subresource": "resize"}}


def resize_preemption(*disabled_by: str) -> Object:
    """Has the node let pods preempt others to be resized, unless someone disables it."""
    policy = {"disableResizePreemption": [*disabled_by]} if disabled_by else None
    patch = {"spec": {"podPreemptionPolicy": policy}}
    return {"patch": {"kind": "Node", "name": "n", "patch": patch}}


PENDING_RESIZE: Final = '.status.conditions[?(@.type=="PodResizePending")].reason'
IS_SCHEDULED: Final = '.status.conditions[?(@.type=="PodScheduled")].status'
GIVEN: Final = ".status.containerStatuses[0].resources.requests.cpu"

OF_1_36: Final = {
    **of_preemption(FULL),
    **of_a_missing_driver(scheduled("db", "large")),
    **of_a_gated_pod(scheduled("low", "n")),
    **of_configuration({"requests": ["a", "b"]}, {"requests": ["a", "b"]}),
}
OF_1_37: Final = {
    **of_preemption(
        f"{FULL} preemption: found a potential placement for pod on node n, preempting 1 victims"
    ),
    **of_a_missing_driver(
        {"pods": {"name": "db", "message": "csi.example.com CSI driver is not installed"}},
        {**bound(0, of="none"), "always": LONG},
    ),
    **of_a_gated_pod(
        {"pods": {"name": "low", "message": "Insufficient cpu"}},
        {**bound(0, of="none"), "always": LONG},
    ),
    **of_configuration({}),
    "N12.2, a pod that runs preempts another to be resized": scenario(
        nodes("n", 1, "3"),
        gates=("InPlacePodVerticalScalingSchedulerPreemption",),
        objects=[HIGH],
        steps=[
            step(
                "Two pods run, on a node that lets nobody preempt to be resized",
                resize_preemption("example.com/autoscaler"),
                create(single("low"), single("high", priorityClassName="high")),
                expect=[bound(2, of="none"), pod_has("high", GIVEN, "1")],
            ),
            step(
                "One asks for more than there is beside the other",
                resize("high", "3"),
                expect=[
                    pod_has("high", PENDING_RESIZE, "Deferred"),
                    {
                        "event": {
                            "reason": "FailedScheduling",
                            "name": "high",
                            "message": "1 node had resize preemption disabled",
                        }
                    },
                    {**bound(2, of="none"), "always": LONG},
                ],
            ),
            step(
                "The node lets it",
                resize_preemption(),
                expect=[
                    {"objects": {"kind": "Pod", "name": "low", "count": 0}},
                    {"event": {"reason": "Preempted", "name": "low"}},
                    pod_has("high", GIVEN, "3"),
                    pod_has("high", IS_SCHEDULED, "True", always=LONG),
                    scheduled("high", "n"),
                ],
            ),
            step(
                "Less is done without anybody's help",
                resize("high", "1"),
                expect=[pod_has("high", GIVEN, "1")],
            ),
        ],
    ),
    "N3.5, a volume is made where more storage is free": by_capacity(gates=()),
    "N4.1, a rule keeps pods from its device": scenario(
        nodes("n", 1, "4"),
        gates=(),
        objects=[CLASS, slice_of("n", {"name": "gpu-0"}, {"name": "gpu-1"})],
        steps=[
            step(
                "A device is broken, and two pods want one",
                create(rule("gpu-0", "NoExecute")),
                create(claim("one", "a"), claim("two", "a"), using("one")),
                expect=[scheduled("one", "n"), allocated("one", "results[0].device", "gpu-1")],
            ),
            step(
                "There is no other",
                create(using("two")),
                expect=[
                    {"pods": {"name": "two", "message": "cannot allocate all claims"}},
                    {**bound(1, of="none"), "always": LONG},
                ],
            ),
            step(
                "It is repaired",
                {"delete": {"kind": "DeviceTaintRule", "name": "broken"}},
                expect=[scheduled("two", "n"), allocated("two", "results[0].device", "gpu-0")],
            ),
        ],
    ),
    "N4.8, devices of one counter set that do not go together": scenario(
        nodes("n", 1, "4"),
        gates=("DRADeviceCompatibilityGroups",),
        objects=[
            CLASS,
            slice_of(
                "n",
                slices=2,
                sharedCounters=[{"name": "card", "counters": {"parts": {"value": "4"}}}],
            ),
            slice_of(
                "n",
                *(partition(*each) for each in (("a1", "a"), ("a2", "a"), ("b1", "b"))),
                slices=2,
            ),
        ],
        steps=[
            step(
                "A device of one group is allocated",
                create(claim("one", "a"), using("one")),
                expect=[scheduled("one", "n"), allocated("one", "results[0].device", "a1")],
            ),
            step(
                "Another of its group goes with it, as another scheduler sees too",
                {"scheduler": "restart"},
                create(claim("two", "a"), using("two")),
                expect=[scheduled("two", "n"), allocated("two", "results[0].device", "a2")],
            ),
            step(
                "One of another group does not",
                create(claim("three", "a"), using("three")),
                expect=[
                    {"pods": {"name": "three", "message": "cannot allocate all claims"}},
                    {**bound(2, of="none"), "always": LONG},
                ],
            ),
        ],
    ),
    "N4.10, operations that a slice lets nodes skip": scenario(
        nodes("n", 1, "4"),
        gates=("DRAOptionalNodeOperations",),
        objects=[CLASS, slice_of("n", {"name": "gpu-0"}, skipNodeOperations=["*"])],
        steps=[
            step(
                "A node that does not know of it",
                create(claim("one", "a"), using("one")),
                expect=[
                    {"pods": {"name": "one", "scheduled": False, "reason": "Unschedulable"}},
                    {**bound(0, of="none"), "always": LONG},
                ],
            ),
            step(
                "One that does",
                {
                    "patch": {
                        "kind": "Node",
                        "name": "n",
                        "patch": {"status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}},
                        "subresource": "status",
                    }
                },
                expect=[
                    scheduled("one", "n"),
                    allocated("one", "results[0].skipNodeOperations", ["*"]),
                ],
            ),
        ],
    ),
}


@by_release({}, of_1_36=OF_1_36, of_1_37=OF_1_37)
def test_changes(case: Object, release: str, tmp_path: Path) -> None:
    check(case, release, tmp_path)
