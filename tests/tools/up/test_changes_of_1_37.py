"""What 1.37 decides and writes that 1.36 does not, on an embedded cluster of either (1.37 spec).

What of N3 and N4 a cluster does not show, or other tests show:

- N3.2: the API server would have to fail as it binds (`tests/scheduler/test_binding_cycle.py`).
- N3.9, N3.12, N3.13, N3.15: metrics alone differ (`tests/scheduler/queue` and `metrics`); a gated
  pod that is asked about again stays gated.
- N3.11: a late patch would have to meet a pod that was bound meanwhile (`test_api_writer.py`).
- N3.16: both do the same. N3.17: it is about the API server (`tests/cluster`).
- N4.2: a gate that is locked keeps the scheduler from starting (`tests/scheduler/config`).
- N4.3: but for one, what crashed or went by chance (`tests/plugins/dynamic_resources`).
- N4.6: a watch would have to lose an event (`test_claim_tracker.py` there).
- N4.11: `test_node_allocatable.py`. N4.12: `test_group_claims.py`.
"""

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


def of_image_volumes(node: str) -> Cases:
    """An image volume of a pod is on one node, and another node has more room."""
    volume = {"name": "model", "image": {"reference": "model:latest"}}
    images = {"status": {"images": [{"names": ["model:latest"], "sizeBytes": 2000 << 20}]}}
    patch = {"kind": "Node", "name": "small", "patch": images, "subresource": "status"}
    scores = [{"name": "ImageLocality", "weight": 1}, {"name": "NodeResourcesFit", "weight": 1}]
    fit = {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 1}]}}
    profile = {
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": scores}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": fit}],
    }
    return {
        "N3.3, an image volume": scenario(
            nodes("small", 1, "1"),
            nodes("large", 1, "4"),
            gates=(),
            profiles=[profile],
            steps=[
                step("One node has its image", {"patch": patch}, expect=[HAS_IMAGE]),
                step(
                    "A pod with that volume",
                    create(single("p", volumes=[volume])),
                    expect=[scheduled("p", node)],
                ),
            ],
        )
    }


HAS_IMAGE: Final[Object] = {
    "objects": {
        "kind": "Node",
        "name": "small",
        "path": ".status.images[0].names[0]",
        "equals": "model:latest",
    }
}


def of_a_pod_under_resize(*expect: Object) -> Cases:
    """Of two containers one is to have more and the other less, on a node that is cut off."""
    one, two = (
        {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}}
        for name, cpu in (("c", "1"), ("d", "2"))
    )
    both = single("both", nodeName="n")
    both["spec"]["containers"] = [one, two]
    other_way_round = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}}
        for name, cpu in (("c", "2"), ("d", "1"))
    ]
    patch = {"spec": {"containers": other_way_round}}
    cut_off = {"berth.dev/failure": "unreachable"}
    steps = [
        step("It runs", create(both), expect=[pod_has("both", GIVEN, "1")]),
        step(
            "The kubelet does not hear of the resize",
            {"annotate": {"kind": "Node", "name": "n", "annotations": cut_off}},
            {"patch": {"kind": "Pod", "name": "both", "patch": patch, "subresource": "resize"}},
            expect=[pod_has("both", ".spec.containers[0].resources.requests.cpu", "2")],
        ),
        step("A pod for which there is room", create(single("p")), expect=[*expect]),
    ]
    name = "N3.4, containers that are resized in opposite directions"
    return {name: scenario(nodes("n", 1, "4"), gates=(), steps=steps)}


def of_disruption_budgets(node: str) -> Cases:
    """A pod of one node is kept by two budgets, of which the second has room for another pod.

    The victims of the other node break one budget, and are of higher priority.
    """

    def budget(name: str, key: str) -> Object:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {key: "yes"}}}
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": spec,
        }

    def victim(name: str, on: str, *keys: str, **spec: Any) -> Object:
        built = single(name, nodeName=on, **spec)
        built["metadata"]["labels"] |= dict.fromkeys(keys, "yes")
        return built

    middle = {**HIGH, "metadata": {"name": "middle"}, "value": 50}
    importance = {"priorityClassName": "middle"}
    steps = [
        step(
            "Both nodes are full",
            create(HIGH, middle, budget("a", "a"), budget("b", "b"), budget("c", "c")),
            create(victim("x", "n", "a", "b"), victim("y", "n", "b")),
            create(victim("z", "m", "c", **importance), victim("w", "m", **importance)),
            expect=[
                {"pods": {"selector": "group=none", "ready": True, "count": 4}},
                allows("a", 0),
                allows("b", 1),
                allows("c", 0),
            ],
        ),
        step(
            "A pod that needs one of them",
            create(single("high", cpu="2", priorityClassName="high")),
            expect=[scheduled("high", node)],
        ),
    ]
    both = (nodes("n", 1, "2"), nodes("m", 1, "2"))
    return {"N3.7, a pod of two budgets": scenario(*both, gates=(), steps=steps)}


def allows(budget: str, disruptions: int) -> Object:
    where = {"path": ".status.disruptionsAllowed", "equals": disruptions}
    return {"objects": {"kind": "PodDisruptionBudget", "name": budget, **where}}


def of_anti_affinity(*expect: Object) -> Cases:
    """A pod is kept away by one of two pods that it does not go with; the one is deleted."""
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
        for app in ("a", "b")
    ]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    other = single("other")
    other["metadata"]["labels"]["app"] = "a"
    steps = [
        step("Another runs", create(other), expect=[scheduled("other", "n")]),
        step(
            "A pod does not go with it",
            create(single("p", affinity=apart)),
            expect=[{"pods": {"name": "p", "message": "anti-affinity rules"}}],
        ),
        step(
            "The other goes",
            {"delete": {"kind": "Pod", "name": "other"}},
            expect=[*expect],
        ),
    ]
    name = "N3.10, one of two anti-affinity terms"
    return {name: scenario(nodes("n", 1, "4"), gates=(), steps=steps)}


def of_a_selector(message: str) -> Cases:
    """A claim asks for an attribute that a device does not have."""
    expression = 'device.attributes["gpu.example.com"].model == "a"'
    asked = claim("one", "a")
    selectors = [{"cel": {"expression": expression}}]
    asked["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = selectors
    only = step(
        "A pod that uses it",
        create(asked, using("one")),
        expect=[{"pods": {"name": "one", "scheduled": False, "message": message}}],
    )
    name = "N4.4, a selector that fails"
    devices = slice_of("n", {"name": "gpu-0"})
    return {name: scenario(nodes("n", 1, "4"), gates=(), objects=[CLASS, devices], steps=[only])}


def of_fractions(consumed: str, *, gates: tuple[str, ...] = ()) -> Cases:
    """A device whose capacity is given away by halves."""
    steps_of_half = {"min": "500m", "step": "500m"}
    policy = {"default": "500m", "validRange": steps_of_half}
    shared = {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {"cores": {"value": "4", "requestPolicy": policy}},
    }
    asked = claim("one", "a")
    exactly = asked["spec"]["devices"]["requests"][0]["exactly"]
    exactly["capacity"] = {"requests": {"cores": "1200m"}}
    only = step(
        "A pod asks for a little more than two halves",
        create(asked, using("one")),
        expect=[
            scheduled("one", "n"),
            allocated("one", "results[0].consumedCapacity.cores", consumed),
        ],
    )
    name = "N4.7, a fractional range" + (" with the gate" if gates else "")
    objects = [CLASS, slice_of("n", shared)]
    return {name: scenario(nodes("n", 1, "4"), gates=gates, objects=objects, steps=[only])}


def card(name: str, bus: str) -> Object:
    """A device on a bus, whose cores are given to several claims."""
    return {
        "name": name,
        "attributes": {"bus": {"string": bus}},
        "allowMultipleAllocations": True,
        "capacity": {"cores": {"value": "4"}},
    }


def with_cores(name: str, cores: str, mode: str) -> Object:
    """A claim for so many cores of a device, or of each."""
    asked = claim(name, "a")
    exactly = asked["spec"]["devices"]["requests"][0]["exactly"]
    exactly |= {"allocationMode": mode, "capacity": {"requests": {"cores": cores}}}
    return asked


def of_all_devices(*expect: Object) -> Cases:
    """A claim for some of each device, of which one has less left."""
    steps = [
        step(
            "Most of one device is taken",
            create(with_cores("first", "3", "ExactCount"), using("first")),
            expect=[scheduled("first", "n")],
        ),
        step(
            "A pod asks for more of each than that one has left",
            create(with_cores("one", "2", "All"), using("one")),
            expect=[*expect],
        ),
    ]
    objects = [CLASS, slice_of("n", card("a", "0:0"), card("b", "0:1"))]
    name = "N4.3, all devices, of which one has too little left"
    return {name: scenario(nodes("n", 1, "4"), gates=(), objects=objects, steps=steps)}


def of_one_root(*names: str) -> Object:
    """A claim for two devices of which what comes before the colon of the bus is the same."""
    derived = 'device.attributes["gpu.example.com"].bus.split(":")[0]'
    asked = claim("one", *names, constraints=[{"matchAttribute": "example.com/root"}])
    for request in asked["spec"]["devices"]["requests"]:
        attribute = {"name": "example.com/root", "expression": derived}
        request["exactly"]["derivedAttributes"] = [attribute]
    return asked


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


MOUNTING: Final = single("p", volumes=[{"name": "v", "emptyDir": {}}])
MOUNTING["spec"]["containers"][0]["volumeMounts"] = [
    {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
]

PENDING_RESIZE: Final = '.status.conditions[?(@.type=="PodResizePending")].reason'
IS_SCHEDULED: Final = '.status.conditions[?(@.type=="PodScheduled")].status'
GIVEN: Final = ".status.containerStatuses[0].resources.requests.cpu"

OF_1_36: Final = {
    **of_preemption(FULL),
    **of_image_volumes("small"),
    **of_a_pod_under_resize({"pods": {"name": "p", "message": "Insufficient cpu"}}),
    **of_disruption_budgets("m"),
    **of_anti_affinity(
        {"pods": {"name": "p", "scheduled": False}, "always": "4m"},
        {**scheduled("p", "n"), "within": "2m"},
    ),
    **of_a_selector("selector #0: CEL runtime error: no such key: model"),
    **of_all_devices(scheduled("one", "n"), allocated("one", "results[0].device", "b")),
    **of_fractions("2"),
    **of_a_missing_driver(scheduled("db", "large")),
    **of_a_gated_pod(scheduled("low", "n")),
    **of_configuration({"requests": ["a", "b"]}, {"requests": ["a", "b"]}),
}
OF_1_37: Final = {
    **of_preemption(
        f"{FULL} preemption: found a potential placement for pod on node n, preempting 1 victims"
    ),
    **of_image_volumes("large"),
    **of_a_pod_under_resize(scheduled("p", "n")),
    **of_disruption_budgets("n"),
    **of_anti_affinity({"pods": {"name": "p", "node": "n"}, "within": "1m"}),
    **of_a_selector(
        "selector #0 on device gpu.example.com/n/gpu-0: CEL runtime error: no such key: model."
        " consider using CEL optional chaining"
    ),
    **of_all_devices(
        {"pods": {"name": "one", "message": "cannot allocate all claims"}},
        {**bound(1, of="none"), "always": LONG},
    ),
    **of_fractions("2"),
    **of_fractions("1500m", gates=("DRAFractionalCapacityRange",)),
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
    "N3.14, a pod that needs a feature of its node": scenario(
        nodes("n", 1, "4"),
        gates=("VolumeBindMountOptions",),
        steps=[
            step(
                "No node declares it",
                create(MOUNTING),
                expect=[{"pods": {"name": "p", "message": "didn't match Pod's required features"}}],
            ),
            step(
                "One does",
                {
                    "patch": {
                        "kind": "Node",
                        "name": "n",
                        "patch": {"status": {"declaredFeatures": ["VolumeBindMountOptions"]}},
                        "subresource": "status",
                    }
                },
                expect=[scheduled("p", "n")],
            ),
        ],
    ),
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
    "N4.9, devices that are alike in what is derived": scenario(
        nodes("n", 1, "4"),
        gates=("DRADerivedAttributes",),
        objects=[
            CLASS,
            slice_of("n", card("a", "0:0"), card("b", "1:0"), card("c", "1:1")),
        ],
        steps=[
            step(
                "A pod with two devices of one root",
                create(of_one_root("x", "y"), using("one")),
                expect=[
                    scheduled("one", "n"),
                    allocated("one", "results[0].device", "b"),
                    allocated("one", "results[1].device", "c"),
                ],
            )
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
