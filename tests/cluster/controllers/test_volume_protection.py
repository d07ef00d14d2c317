"""Volumes and claims that are deleted: who holds them, and until when."""

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.controllers.volume_protection import (
    CLAIM_FINALIZER,
    VOLUME_FINALIZER,
    ClaimProtectionController,
    VolumeProtectionController,
)
from berth.cluster.object_views import Meta
from berth.cluster.pods.controllers import (
    ClaimSource,
    EphemeralVolumeView,
    PodSpecView,
    PodView,
    VolumeView,
)
from tests.cluster.objects import BIRTH, pod_view

CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/p-data"
KEY = "default/p-data"
DATA = VolumeView("data", persistent_volume_claim=ClaimSource("p-data"))
SCRATCH = VolumeView("data", ephemeral=EphemeralVolumeView())


def deleted(name: str, namespace: str, *finalizers: str) -> Meta:
    return Meta(name, "u", namespace, "7", finalizers=[*finalizers], deletion_timestamp=BIRTH)


def pod(volume: VolumeView, *, node: str | None = "n1") -> PodView:
    return msgspec.structs.replace(pod_view("p"), spec=PodSpecView(node, [volume]))


@pytest.mark.parametrize(
    ("user", "is_held"),
    [
        pytest.param(pod(DATA), True, id="a pod on a node"),
        pytest.param(pod(SCRATCH), True, id="a pod whose volume it was made for"),
        pytest.param(pod(DATA, node=None), False, id="a pod that waits for a node"),
        pytest.param(pod(VolumeView("data")), False, id="a pod with other volumes"),
    ],
)
def test_a_claim_in_use_stays(user: PodView, is_held: bool) -> None:
    claims: Table[ResourceView] = Table()
    pods: Table[PodView] = Table()
    controller = ClaimProtectionController(claims, pods)
    enqueued: list[str] = []
    controller.subscribe(enqueued.append)
    pods.on_add(user)
    claims.on_add(ResourceView(deleted("p-data", "default", "other", CLAIM_FINALIZER)))

    release = Patch(
        CLAIM, {"metadata": {"resourceVersion": "7", "uid": "u", "finalizers": ["other"]}}
    )
    assert controller.plan(KEY).actions == ([] if is_held else [release])
    pods.on_delete(user)
    assert controller.plan(KEY).actions == [release]
    assert enqueued == ([KEY] * 2 if is_held or user.spec.node_name is None else [KEY])


@pytest.mark.parametrize(("phase", "is_held"), [("Bound", True), ("Released", False)])
def test_a_bound_volume_stays(phase: str, is_held: bool) -> None:
    volumes: Table[ResourceView] = Table()
    controller = VolumeProtectionController(volumes)
    enqueued: list[str] = []
    controller.subscribe(enqueued.append)
    volumes.on_add(ResourceView(deleted("v", "", VOLUME_FINALIZER), status={"phase": phase}))
    assert enqueued == ["v"]
    assert bool(controller.plan("v").actions) is not is_held


def test_what_nobody_deletes_is_left_alone() -> None:
    volumes: Table[ResourceView] = Table()
    controller = VolumeProtectionController(volumes)
    controller.subscribe(lambda _key: pytest.fail("it stays"))
    volumes.on_add(ResourceView(Meta("v", "u", finalizers=[VOLUME_FINALIZER])))
    assert controller.plan("v").actions == []
