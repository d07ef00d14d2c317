"""Claims that the pods of a PodGroup share: what the controller of claims plans for them."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.resource_claim import (
    CLAIM,
    POD,
    POD_GROUP,
    POD_GROUP_CLAIM_NAME,
    ResourceClaimController,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.object_views import Meta, OwnerReference
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.kube.client.errors import NotFoundError

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
GROUP = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/g"
SHARED = {"name": "gpu", "resourceClaimTemplateName": "one"}
OWNER = OwnerReference("scheduling.k8s.io/v1alpha2", "PodGroup", "g", "uid-g", controller=True)
DEVICES = {"devices": {"requests": [{"name": "gpu"}]}}


class World:
    def __init__(self) -> None:
        self.pods: Table[PodView] = Table()
        self.claims: Table[ResourceView] = Table()
        self.templates: Table[ResourceView] = Table()
        self.groups: Table[ResourceView] = Table()
        self.controller = ResourceClaimController(
            self.pods,
            self.claims,
            self.templates,
            self.groups,
            group_api="scheduling.k8s.io/v1alpha2",
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        self.templates.on_add(ResourceView(Meta("one", "uid-one", "default"), {"spec": DEVICES}))

    def plan(self, key: str) -> list[Action]:
        return self.controller.plan(key).actions


@pytest.fixture
def world() -> World:
    return World()


def group(
    *, deleted: bool = False, claims: list[Object] | None = None, **status: Any
) -> ResourceView:
    when = "2026-01-01T00:00:00Z" if deleted else None
    spec = {"resourceClaims": [SHARED] if claims is None else claims}
    return ResourceView(Meta("g", "uid-g", "default", deletion_timestamp=when), spec, status)


def pod(**claim: str) -> PodView:
    return msgspec.convert(
        {
            "metadata": {"name": "p", "uid": "uid-p", "namespace": "default"},
            "spec": {
                "schedulingGroup": {"podGroupName": "g"},
                "resourceClaims": [{**SHARED, **claim}],
            },
            "status": {"phase": "Pending"},
        },
        PodView,
    )


def made(**status: Any) -> ResourceView:
    meta = Meta(
        "c",
        "uid-c",
        "default",
        resource_version="3",
        annotations={POD_GROUP_CLAIM_NAME: "gpu"},
        owner_references=[OWNER],
    )
    return ResourceView(meta, DEVICES, status)


def told(path: str, uid: str) -> Patch:
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
    return Patch(f"{path}/status", {"metadata": {"uid": uid}, "status": status}, STRATEGIC_MERGE)


def test_one_claim_is_made_for_the_group_and_none_for_its_pods(world: World) -> None:
    world.pods.on_add(pod())
    assert world.plan(f"{POD}default/p") == []
    world.enqueued.clear()
    world.groups.on_add(group())
    assert world.enqueued == [f"{POD_GROUP}default/g", f"{POD}default/p"]
    assert world.plan(f"{POD}default/p") == []

    [create] = world.plan(f"{POD_GROUP}default/g")

    assert isinstance(create, Create)
    assert create.path == CLAIMS
    meta = create.body["metadata"]
    assert meta["name"].startswith("g-gpu-")
    assert meta["annotations"] == {"resource.kubernetes.io/podgroup-claim-name": "gpu"}
    assert meta["ownerReferences"] == [{**msgspec.to_builtins(OWNER), "blockOwnerDeletion": True}]
    assert create.body["spec"] == DEVICES


def test_group_and_pods_are_told_what_the_claim_is_called(world: World) -> None:
    world.pods.on_add(pod())
    world.groups.on_add(group())
    world.enqueued.clear()
    world.claims.on_add(made())
    assert world.enqueued == [f"{CLAIM}default/c", f"{POD_GROUP}default/g", f"{POD}default/p"]
    assert world.plan(f"{POD_GROUP}default/g") == [told(GROUP, "uid-g")]
    assert world.plan(f"{POD}default/p") == [told(f"{PODS}/p", "uid-p")]
    status = [{"name": "gpu", "resourceClaimName": "c"}]
    world.groups.on_update(group(), group(resourceClaimStatuses=status))
    assert world.plan(f"{POD_GROUP}default/g") == []


@pytest.mark.parametrize(
    ("a_pod", "a_group"),
    [
        pytest.param(pod(name="nic"), group(), id="of another name"),
        pytest.param(pod(resourceClaimTemplateName="two"), group(), id="of another template"),
        pytest.param(pod(), group(claims=[]), id="the group has no claims"),
    ],
)
def test_a_claim_that_is_not_the_groups_is_made_for_the_pod(
    world: World, a_pod: PodView, a_group: ResourceView
) -> None:
    world.templates.on_add(ResourceView(Meta("two", "uid-two", "default"), {"spec": DEVICES}))
    world.pods.on_add(a_pod)
    world.groups.on_add(a_group)
    [create] = world.plan(f"{POD}default/p")
    assert isinstance(create, Create)
    assert create.body["metadata"]["ownerReferences"][0]["kind"] == "Pod"


def test_no_claim_is_made_for_a_group_that_goes(world: World) -> None:
    world.groups.on_add(group(deleted=True))
    assert world.plan(f"{POD_GROUP}default/g") == []


CONSUMER = {
    "apiGroup": "scheduling.k8s.io",
    "resource": "podgroups",
    "name": "g",
    "uid": "uid-g",
}


def test_the_reservation_of_a_group_ends_when_it_is_gone(world: World) -> None:
    world.groups.on_add(group(deleted=True))
    world.claims.on_add(made(reservedFor=[CONSUMER], allocation={"devices": {}}))
    assert world.plan(f"{CLAIM}default/c") == []  # its finalizer keeps it while pods need it
    world.enqueued.clear()
    world.groups.on_delete(group(deleted=True))
    assert f"{CLAIM}default/c" in world.enqueued
    get = Get(GROUP)
    assert world.plan(f"{CLAIM}default/c") == [get]

    error = NotFoundError(404, "NotFound", "no")
    world.controller.finished(f"{CLAIM}default/c", Outcome(get, error=error))

    meta = {"uid": "uid-c", "resourceVersion": "3"}
    status: Object = {"reservedFor": [], "allocation": None}
    body = {"metadata": meta, "status": status}
    assert world.plan(f"{CLAIM}default/c") == [Patch(f"{CLAIMS}/c/status", body)]


def test_without_the_gate_a_group_is_a_consumer_like_any_other(world: World) -> None:
    controller = ResourceClaimController(world.pods, world.claims, world.templates)
    controller.subscribe(world.enqueued.append)
    world.claims.on_add(made(reservedFor=[CONSUMER], allocation={"devices": {}}))
    world.pods.on_add(pod())
    assert controller.plan(f"{CLAIM}default/c").actions == []
    [create] = controller.plan(f"{POD}default/p").actions
    assert isinstance(create, Create)
