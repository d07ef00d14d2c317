"""Claims for generic ephemeral volumes: what their controller plans."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Create
from berth.cluster.controllers.ephemeral_volume import EphemeralVolumeController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.object_views import Meta, OwnerReference
from berth.cluster.pods.controllers import PodView

SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": SPEC}
OWNER = OwnerReference("v1", "Pod", "p", "uid-p", controller=True)


class World:
    def __init__(self) -> None:
        self.pods: Table[PodView] = Table()
        self.claims: Table[ResourceView] = Table()
        self.controller = EphemeralVolumeController(self.pods, self.claims)
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)


@pytest.fixture
def world() -> World:
    return World()


def pod(**more: Any) -> PodView:
    manifest = {
        "metadata": {"name": "p", "uid": "uid-p", "namespace": "default", **more},
        "spec": {
            "volumes": [
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": TEMPLATE}},
                {"name": "config", "configMap": {"name": "c"}},
            ]
        },
    }
    return msgspec.convert(manifest, PodView)


def claim(owner: OwnerReference | None = OWNER) -> ResourceView:
    owners = None if owner is None else [owner]
    return ResourceView(Meta("p-scratch", "uid-c", "default", owner_references=owners))


def test_each_ephemeral_volume_gets_a_claim_of_its_pod(world: World) -> None:
    world.pods.on_add(pod())

    assert world.enqueued == ["default/p"]
    assert world.controller.plan("default/p").actions == [
        Create(
            "/api/v1/namespaces/default/persistentvolumeclaims",
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": "p-scratch",
                    "namespace": "default",
                    "labels": {"app": "a"},
                    "annotations": {},
                    "ownerReferences": [
                        {
                            "apiVersion": "v1",
                            "kind": "Pod",
                            "name": "p",
                            "uid": "uid-p",
                            "controller": True,
                            "blockOwnerDeletion": True,
                        }
                    ],
                },
                "spec": SPEC,
            },
        )
    ]


@pytest.mark.parametrize(
    "owner", [pytest.param(OWNER, id="its own"), pytest.param(None, id="somebody else's")]
)
def test_a_claim_that_is_there_is_left_alone(world: World, owner: OwnerReference | None) -> None:
    world.pods.on_add(pod())
    world.claims.on_add(claim(owner))
    assert world.controller.plan("default/p").actions == []


def test_a_pod_that_leaves_gets_none(world: World) -> None:
    world.pods.on_add(pod(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert world.controller.plan("default/p").actions == []


def test_a_claim_that_was_deleted_is_made_again(world: World) -> None:
    world.pods.on_add(pod())
    world.claims.on_add(claim())
    world.claims.on_delete(claim())
    assert world.enqueued == ["default/p", "default/p"]
