"""Pods with volumes, whose decisions share the answers of plugins as far as these can be told."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from berth.kube.objects.pod import (
    AWSElasticBlockStore,
    EphemeralVolumeSource,
    GCEPersistentDisk,
    PersistentVolumeClaimSource,
    Pod,
    Volume,
)
from berth.scheduler.answer_cache.decision import Decider
from berth.scheduler.outcome import Placed, Unschedulable
from tests.builders import pod, requirement, term
from tests.scheduler.pair import Pair, fields_of, node_of, varied
from tests.volume_builders import (
    attachment,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    volume,
)

DRIVER, EBS, EBS_PLUGIN = "csi.example.com", "ebs.csi.aws.com", "kubernetes.io/aws-ebs"
ZONE = "topology.kubernetes.io/zone"


class Storage:
    """Makes volumes of all kinds, and pods that use them."""

    def __init__(self, pair: Pair, rng: random.Random) -> None:
        self._pair = pair
        self._rng = rng
        self._claims: list[str] = []
        self._has_limits = rng.random() < 0.5
        pair.put(
            storage_class("local"),
            storage_class("soon", mode="Immediate"),
            storage_class("new", provisioner=DRIVER),
        )

    def node(self, number: int) -> Iterator[Any]:
        """Yield a node, and its CSINode if it has one."""
        rng, made = self._rng, node_of(number, self._rng)
        zone = made.metadata.labels.get("zone")
        labels = {ZONE: zone, "topology.ebs.csi.aws.com/zone": zone} if zone else {}
        made.metadata.labels.update(labels)
        yield made
        if rng.random() < 0.7:
            limits = {DRIVER: rng.choice([1, 2, 4, None]), EBS: rng.choice([1, 3, None])}
            has = {
                limit: limits[limit] for limit in limits if self._has_limits and rng.random() < 0.5
            }
            migrated = rng.choice(["", EBS_PLUGIN])
            yield csi_node(made.metadata.name, limits=has, migrated=migrated)

    def pod(self, name: str, fields: dict[str, Any], *, own: str) -> Pod:
        """Make a pod with a claim of its own kind, and with others."""
        rng, volumes, claims = self._rng, [], [self._claim(f"{name}-data", own, name)]
        if own == "ephemeral":
            volumes, claims = [Volume("data", ephemeral=EphemeralVolumeSource())], []
        if rng.random() < 0.1 and self._claims:
            claims.append(rng.choice(self._claims))
        if rng.random() < 0.05:
            volumes.append(Volume("disk", gce_persistent_disk=GCEPersistentDisk("disk")))
        self._claims += claims
        sources = map(PersistentVolumeClaimSource, claims)
        volumes += (Volume(f"v{i}", each) for i, each in enumerate(sources))
        return pod(name, **fields, volumes=volumes)

    def change(self) -> None:
        """Let something happen to what exists."""
        rng = self._rng
        name = f"n{rng.randrange(16)}"
        match rng.randrange(4):
            case 0 if self._has_limits:
                limits = {DRIVER: rng.choice([1, 5, None]), EBS: rng.choice([2, None])}
                self._pair.put(csi_node(name, limits=limits))
            case 1 if self._claims:
                pv = f"pv-{rng.choice(self._claims)}"
                self._pair.put(attachment(f"va-{rng.random()}", node=name, volume=pv))
            case 2:
                self._pair.put(csi_driver(DRIVER, required=True))
            case _ if self._claims:
                self._claim(rng.choice(self._claims), "plain", "")

    def _claim(self, name: str, kind: str, pod_name: str) -> str:
        """Make a claim of a kind, with its volume if it has one."""
        rng, pv = self._rng, f"pv-{name}"
        zones = [rng.choice("abc")] if rng.random() < 0.8 else ["a", "c"]
        reach = [term(requirement(ZONE, "In", *zones))]
        fields: dict[str, Any] = {}
        of_claim: dict[str, Any] = {"bound_to": pv}
        match kind:
            case "zonal":
                fields = {"reach": reach}
            case "labelled":
                fields = {"labels": {ZONE: "__".join(zones)}}
            case "in-tree":
                fields = {"aws_elastic_block_store": AWSElasticBlockStore(f"vol-{name}")}
                if rng.random() < 0.5:
                    fields["labels"] = {ZONE: zones[0]}
                if rng.random() < 0.1:
                    fields["aws_elastic_block_store"] = AWSElasticBlockStore("aws://no-zone")
            case "single":
                of_claim["modes"] = ["ReadWriteOncePod"]
            case "ephemeral":
                name, of_claim["owner"] = f"{pod_name}-data", f"pod-default-{pod_name}"
            case "local":
                self._pair.put(volume(f"free-{name}", hosts=[f"n{n}" for n in range(0, 16, 2)]))
                of_claim = {"storage_class": "local"}
            case "new" | "soon":
                of_claim = {"storage_class": kind}
            case "lost":
                self._pair.put(claim(name, bound_to=pv, deleted="2026-01-01T00:00:00Z"))
                return name
            case "absent":
                return name
        made = claim(name, **of_claim)
        if "bound_to" in of_claim and rng.random() < 0.97:
            self._pair.put(volume(pv, claim=made, **fields))
        self._pair.put(made)
        return name


BOUND = ("plain", "zonal", "labelled", "in-tree", "single", "ephemeral")
OTHERS = ("local", "new", "new", "soon", "lost", "absent")


async def check_one_world(seed: int, *kinds: str) -> None:
    rng = random.Random(seed)
    pair = Pair(seed)
    storage = Storage(pair, rng)
    for number in range(rng.randint(5, 14)):
        pair.put(*storage.node(number))
    templates = [{"cpu": "50m"}, fields_of(rng)]
    created = 0
    for _ in range(rng.randint(3, 6)):
        match rng.randrange(10):
            case 0:
                pair.put(*storage.node(rng.randrange(16)))
            case 1:
                storage.change()
            case 2:
                alive = [*pair.both[1].cluster.pods]
                if alive:
                    pair.delete(rng.choice(alive))
            case _:
                fields = rng.choice(templates)
                vary, own = rng.random() < 0.2, rng.choice(kinds)
                for _ in range(rng.randint(4, 20)):
                    created += 1
                    of_pod = varied(fields, rng) if vary else fields
                    pair.put(storage.pod(f"p{created}", of_pod, own=own))
                    if rng.random() < 0.1:
                        await pair.until_idle()
        await pair.until_idle()
    pair.check(seed)


async def test_pods_with_volumes_are_decided_about_as_if_all_plugins_were_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[frozenset[str]] = []
    decide = Decider.decide

    def counted(self: Decider, *args: Any) -> Placed | Unschedulable:
        placed = decide(self, *args)
        if self.cached.pod.template.volumes:
            asked.append(self.cached.asked)
        return placed

    monkeypatch.setattr(Decider, "decide", counted)
    for seed, kind in enumerate((*BOUND, *OTHERS)):
        await check_one_world(seed, kind, BOUND[seed % 3])
    assert asked.count(frozenset()) > 30
    assert sum("NodeVolumeLimits" in each for each in asked) > 50
    assert sum("VolumeBinding" in each for each in asked) > 50
