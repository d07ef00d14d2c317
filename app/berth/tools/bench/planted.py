"""Clusters of which the fewest nodes are known, for they were made from a packing without gaps.

Some nodes are filled to the last milli-core and MiB, so that the requests of all pods need that
many of the largest nodes. Then the pods are spread over more nodes.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from berth.insight.whatif.snapshot import Snapshot
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.tools.bench.workloads import HOSTNAME, ZONE, requests

VARIANTS: Final = ("plain", "two sizes", "host ports", "anti-affinity", "zone spread")
SEEDS: Final = (1, 2)
LARGE: Final = (16_000, 65_536)
"""Milli-cores and MiB of a node."""
SMALL: Final = (8_000, 32_768)
KINDS: Final = 10
CPUS: Final = (250, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000)
MEMORIES: Final = (512, 1_024, 2_048, 3_072, 4_096, 6_144, 8_192)
AGENT: Final = (250, 512)
"""What the pods request of which each node has one at most."""
SPARE: Final = 0.3
"""Nodes there are more than are needed, as a share of those needed."""

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Planted:
    """A cluster as a snapshot, and the fewest nodes that its pods need."""

    snapshot: Snapshot
    nodes: int
    pods: int
    fewest: int


def planted(nodes: int, variant: str, seed: int) -> Planted:
    """Make a cluster of so many *nodes*; the same arguments make the same."""
    for attempt in range(100):
        made = _planted(nodes, variant, random.Random(f"{nodes} {variant} {seed} {attempt}"))
        if made is not None:
            return made
    raise AssertionError("no pods were spread")


def _planted(nodes: int, variant: str, rng: random.Random) -> Planted | None:
    fewest = round(nodes / (1 + SPARE))
    has_small = variant == "two sizes"
    capacities = [SMALL if has_small and i >= fewest - fewest // 4 else LARGE for i in range(nodes)]
    kinds = [(rng.choice(CPUS), rng.choice(MEMORIES)) for _ in range(KINDS)]
    has_agents = variant in ("host ports", "anti-affinity", "zone spread")
    pods: list[tuple[str, Size]] = []
    for capacity in capacities[:fewest]:
        left = capacity
        if has_agents:
            pods.append(("agent", AGENT))
            left = left[0] - AGENT[0], left[1] - AGENT[1]
        pods += ((f"app-{size[0]}-{size[1]}", size) for size in _filling(left, kinds, rng))
    rng.shuffle(pods)  # or else their order would tell the packing
    homes = _spread(pods, capacities, rng)
    if homes is None:
        return None
    objects: dict[str, Sequence[KubeStruct]] = {
        "Node": [node_of(i, size) for i, size in enumerate(capacities)],
        "Pod": list(_pods(pods, homes, variant)),
    }
    return Planted(Snapshot("2026-01-01T00:00:00Z", None, objects), nodes, len(pods), fewest)


def _filling(left: Size, kinds: Sequence[Size], rng: random.Random) -> Iterator[Size]:
    """Yield sizes that come to *left*: of the *kinds*, and one more for the rest."""
    while fitting := [size for size in kinds if size[0] <= left[0] and size[1] <= left[1]]:
        size = rng.choice(fitting)
        left = left[0] - size[0], left[1] - size[1]
        yield size
    if any(left):
        yield left


def _spread(
    pods: Sequence[tuple[str, Size]], capacities: Sequence[Size], rng: random.Random
) -> list[int] | None:
    """Return a node for each pod, an emptier one for the larger pods first; None if some find none.

    Agents are first, each on another node.
    """
    left = [list(capacity) for capacity in capacities]
    homes = [-1] * len(pods)
    nodes = rng.sample(range(len(left)), len(left))
    agents = iter(nodes)

    def order(index: int) -> tuple[bool, float]:
        name, size = pods[index]
        return name != "agent", -max(size[0] / LARGE[0], size[1] / LARGE[1])

    for index in sorted(range(len(pods)), key=order):
        name, (cpu, memory) = pods[index]
        fitting = [n for n in nodes if left[n][0] >= cpu and left[n][1] >= memory]
        if not fitting:
            return None
        node = next(agents) if name == "agent" else max(fitting, key=lambda n: sum(left[n]))
        left[node][0] -= cpu
        left[node][1] -= memory
        homes[index] = node
    return homes


def node_of(number: int, size: Size) -> Node:
    """Make a node of so many milli-cores and MiB, in one of three zones."""
    amounts = {"cpu": f"{size[0]}m", "memory": f"{size[1]}Mi", "pods": "250"}
    name = f"node-{number:04}"
    labels = {HOSTNAME: name, ZONE: f"zone-{number % 3}"}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": amounts, "capacity": amounts},
        },
        Node,
    )


def _pods(pods: Sequence[tuple[str, Size]], homes: Sequence[int], variant: str) -> Iterator[Pod]:
    numbers: dict[str, int] = defaultdict(int)
    for (app, (cpu, memory)), home in zip(pods, homes, strict=True):
        numbers[app] += 1
        spec: dict[str, Any] = requests(cpu, memory) | {"nodeName": f"node-{home:04}"}
        if app == "agent":
            _restrict(spec, variant)
        name = f"{app}-{numbers[app]}"
        owner = {"kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
        meta = {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": app},
            "ownerReferences": [{"apiVersion": "apps/v1", **owner}],
        }
        yield msgspec.convert({"metadata": meta, "spec": spec}, Pod)


def _restrict(spec: dict[str, Any], variant: str) -> None:
    """Have a node run one agent at most, by the rule of *variant*; or zones as many as others."""
    selector = {"matchLabels": {"app": "agent"}}
    match variant:
        case "host ports":
            spec["containers"][0]["ports"] = [{"containerPort": 9100, "hostPort": 9100}]
        case "anti-affinity":
            term = {"topologyKey": HOSTNAME, "labelSelector": selector}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": required}
        case "zone spread":
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
