"""Workloads of the benchmark: made-up nodes, running pods and kinds of pending pods."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod

Spec = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
PLAIN = "plain, all requests different"
EQUAL = "plain, all requests equal"
FITS_NOWHERE = "fits nowhere"
APPS = 50
"""Running pods belong to so many applications; pending pods to one of them."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A kind of pending pod; *spec* makes the n-th one's spec."""

    name: str
    spec: Callable[[int], Spec]


def requests(cpu: int, memory: int) -> Spec:
    """One container that asks for so many milli-CPU and MiB."""
    return {
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/app:1",
                "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}},
            }
        ]
    }


def _different(n: int) -> Spec:
    return requests(50 + n, 64 + n)


def _spread(when_unsatisfiable: str, n: int) -> Spec:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": _selector(),
    }
    return _different(n) | {"topologySpreadConstraints": [constraint]}


def _selector() -> dict[str, Any]:
    return {"matchLabels": {"app": "app-0"}}


def _affinity(kind: str, key: str, n: int, *, preferred: bool = False, **more: Any) -> Spec:
    term = {"topologyKey": key, "labelSelector": _selector(), **more}
    terms = (
        {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 50, "podAffinityTerm": term}
            ]
        }
        if preferred
        else {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    )
    return _different(n) | {"affinity": {kind: terms}}


WORKLOADS = (
    Workload(PLAIN, _different),
    Workload(EQUAL, lambda _: requests(100, 128)),
    Workload(
        "zone selector and toleration",
        lambda n: (
            _different(n)
            | {
                "nodeSelector": {ZONE: f"zone-{n % 3}"},
                "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            }
        ),
    ),
    Workload(FITS_NOWHERE, lambda n: requests(1_000_000 + n, 64)),
    Workload("required zone spread", lambda n: _spread("DoNotSchedule", n)),
    Workload("preferred zone spread", lambda n: _spread("ScheduleAnyway", n)),
    Workload(
        "required anti-affinity on hostname", lambda n: _affinity("podAntiAffinity", HOSTNAME, n)
    ),
    Workload(
        "preferred anti-affinity on hostname",
        lambda n: _affinity("podAntiAffinity", HOSTNAME, n, preferred=True),
    ),
    Workload("required zone affinity", lambda n: _affinity("podAffinity", ZONE, n)),
    Workload(
        "preferred zone affinity", lambda n: _affinity("podAffinity", ZONE, n, preferred=True)
    ),
    Workload(
        "namespaceSelector anti-affinity",
        lambda n: _affinity(
            "podAntiAffinity", HOSTNAME, n, namespaceSelector={"matchLabels": {"team": "a"}}
        ),
    ),
)


def nodes(count: int) -> Iterator[Node]:
    """Make nodes of three sizes in three zones, one in ten tainted."""
    for n in range(count):
        cpu = (4, 8, 16)[n % 3]
        capacity = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
        taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
        yield msgspec.convert(
            {
                "metadata": {
                    "name": f"node-{n}",
                    "labels": {HOSTNAME: f"node-{n}", ZONE: f"zone-{n % 3}"},
                },
                "spec": {"taints": taints if n % 10 == 0 else []},
                "status": {"allocatable": capacity | {"ephemeral-storage": "100Gi"}},
            },
            Node,
        )


def running_pods(count: int, *, num_nodes: int, rng: random.Random) -> Iterator[Pod]:
    """Make plain pods, evenly over applications, at random over nodes.

    The application that pending pods belong to stays off most nodes, so that there is room for
    pods that keep away from it.
    """
    for n in range(count):
        app = n % APPS
        node = rng.randrange(num_nodes if app else max(num_nodes // 10, 1))
        spec = requests(rng.randrange(10, 100), rng.randrange(16, 256))
        spec["nodeName"] = f"node-{node}"
        yield pod(f"running-{n}", spec, app=app)


def pod(name: str, spec: Spec, *, app: int = 0) -> Pod:
    """Make one pod of the default scheduler, in the namespace ``default``."""
    meta = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "labels": {"app": f"app-{app}"},
    }
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)
