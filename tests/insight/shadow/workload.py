"""Clusters with pods of many kinds, drawn by a seed."""

import random
from collections.abc import Iterator

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.listers import ApiObject
from tests.builders import (
    HOSTNAME,
    ZONE,
    node,
    node_affinity,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    requirement,
    selector,
    spread,
    taint,
    term,
    toleration,
)


def nodes(rng: random.Random, count: int) -> Iterator[ApiObject]:
    for number in range(count):
        yield node(
            f"n{number}",
            cpu=rng.choice([8, 16, 32]),
            memory=rng.choice(["16Gi", "64Gi"]),
            zone=f"z{number % 3}",
            labels={"disk": rng.choice(["ssd", "hdd"])},
            taints=[taint("dedicated", "batch")] if number % 7 == 0 else [],
        )


def pods(rng: random.Random, count: int) -> Iterator[Pod]:
    """Yield pods in need of spread, neighbours, distance, labels, tolerations, too much room."""
    for number in range(count):
        app = f"app{rng.randrange(6)}"
        mine = selector({"app": app})
        special = rng.randrange(8)
        yield pod(
            f"p{number}",
            uid=f"u{number}",
            cpu=99 if special == 7 else rng.choice(["100m", "250m", "1", "2"]),
            memory=rng.choice(["128Mi", "512Mi", "2Gi"]),
            labels={"app": app},
            priority=rng.choice([0, 0, 0, 10]),
            spread={
                1: [spread(ZONE, selector=mine)],
                2: [spread(HOSTNAME, soft=True, selector=mine)],
            }.get(special, []),
            affinity={
                3: pod_affinity(preferred=[(10, pod_term({"app": app}, key=ZONE))]),
                4: pod_anti_affinity(preferred=[(10, pod_term({"app": app}, key=HOSTNAME))]),
                5: node_affinity(required=[term(requirement("disk", "In", "ssd"))]),
            }.get(special),
            tolerations=[toleration("dedicated", "batch")] if special == 6 else [],
        )
