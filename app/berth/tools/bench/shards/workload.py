"""What a soak schedules: apps of several kinds, and what they need beside their pods."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from berth.tools.bench.shards.world import HOSTNAME, SPECS, pod_of

Object = dict[str, Any]

NAMESPACES: Final = tuple(f"team-{number}" for number in range(8))
RESTRICTED: Final = "restricted"
"""The label of pods of kind ``apart`` that have the term; the others are those it is about."""
MIN_COUNT: Final = "min-count"
"""The label of a pod of a group with the number of pods that it needs."""
URGENT: Final = "5"
"""The CPU of a pod of kind ``urgent``: few nodes have it unless others are evicted."""
CLASSES: Final = {"plain": -1000, "urgent": -500}
"""Priorities by the kinds of pods that have one: plain pods may be evicted, for all others."""
DEVICE_CLASS: Final = "gpu"
DRIVER: Final = "gpu.example.com"
STORAGE_CLASS: Final = "local"
WEIGHTS: Final = {
    "plain": 8, "apart": 3, "spread": 3, "together": 2, "group": 12, "devices": 12, "volume": 10,
    "urgent": 6,
}  # fmt: skip
"""How often an app is of which kind."""
USERS_OF_VOLUME: Final = 3
"""Pods that share a volume which only one may use at a time."""


class App(msgspec.Struct):
    kind: str
    namespace: str
    name: str
    pods: list[Object]
    needs: list[tuple[str, Object]] = msgspec.field(default_factory=list)
    """Objects with the collections that they are created in, before the pods."""


def storage_class() -> tuple[str, Object]:
    """Return the class of volumes that are made by hand, and bound where a pod goes."""
    return "/apis/storage.k8s.io/v1/storageclasses", {
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume_of(node: str, number: int) -> tuple[str, Object]:
    """Return a volume on *node*; see :func:`node_of_volume`."""
    here = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return "/api/v1/persistentvolumes", {
        "metadata": {"name": f"{node}.{number}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": STORAGE_CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/mnt/{number}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def node_of_volume(name: str) -> str:
    return name.partition(".")[0]


def devices_of(node: str, number: int) -> tuple[str, Object]:
    """Return the slice of a node with so many devices; their pool has the name of the node."""
    return "/apis/resource.k8s.io/v1/resourceslices", {
        "metadata": {"name": f"{node}-gpu"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{device}"} for device in range(number)],
        },
    }


def device_class() -> tuple[str, Object]:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return "/apis/resource.k8s.io/v1/deviceclasses", {
        "metadata": {"name": DEVICE_CLASS},
        "spec": {"selectors": [selector]},
    }


def priority_classes() -> Iterator[tuple[str, Object]]:
    for name, value in CLASSES.items():
        body = {"metadata": {"name": name}, "value": value}
        yield "/apis/scheduling.k8s.io/v1/priorityclasses", body


def app_of(kind: str, number: int, rng: random.Random, *, most: int) -> App:
    """Return an app of a kind of :data:`WEIGHTS`, with *most* pods if they need nothing else."""
    name, namespace = f"{kind}-{number}", rng.choice(NAMESPACES)
    size = {
        "group": rng.randint(3, 8),
        "devices": rng.randint(1, 4),
        "volume": USERS_OF_VOLUME,
        "urgent": 1,
    }.get(kind) or rng.randint(4, most)
    like = kind if kind in SPECS else "plain"
    app = App(kind, namespace, name, [])
    for index in range(size):
        pod = pod_of(like, name, f"{name}-{index}", namespace=namespace)
        pod["metadata"]["labels"]["kind"] = kind
        if kind in CLASSES:
            pod["spec"]["priorityClassName"] = kind
        pod["spec"]["terminationGracePeriodSeconds"] = 0
        app.pods.append(pod)
    if complete := _PARTICULARS.get(kind):
        complete(app)
    return app


def _apart(app: App) -> None:
    """Only every other pod has the term: it holds in both directions."""
    for index, pod in enumerate(app.pods):
        if index % 2:
            pod["metadata"]["labels"][RESTRICTED] = ""
        else:
            del pod["spec"]["affinity"]


def _group(app: App) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": len(app.pods)}}}
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{app.namespace}/podgroups"
    app.needs.append((path, {"metadata": {"name": app.name}, "spec": policy}))
    for pod in app.pods:
        pod["metadata"]["labels"][MIN_COUNT] = str(len(app.pods))
        pod["spec"]["schedulingGroup"] = {"podGroupName": app.name}


def _devices(app: App) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{app.namespace}/resourceclaims"
    request = {"name": "gpu", "exactly": {"deviceClassName": DEVICE_CLASS}}
    for pod in app.pods:
        name = pod["metadata"]["name"]
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        app.needs.append((path, claim))
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]


def _volume(app: App) -> None:
    path = f"/api/v1/namespaces/{app.namespace}/persistentvolumeclaims"
    spec = {
        "storageClassName": STORAGE_CLASS,
        "accessModes": ["ReadWriteOncePod"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    app.needs.append((path, {"metadata": {"name": app.name}, "spec": spec}))
    for pod in app.pods:
        claim = {"persistentVolumeClaim": {"claimName": app.name}}
        pod["spec"]["volumes"] = [{"name": "data", **claim}]


def _urgent(app: App) -> None:
    for pod in app.pods:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = URGENT


_PARTICULARS: Final[Mapping[str, Callable[[App], None]]] = {
    "apart": _apart,
    "group": _group,
    "devices": _devices,
    "volume": _volume,
    "urgent": _urgent,
}
