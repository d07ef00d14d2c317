"""Claims for pods, and what becomes of them: what the controller of claims plans."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Delete, Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.resource_claim import CLAIM, FINALIZER, POD, ResourceClaimController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.object_views import Meta, OwnerReference
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.kube.client.errors import NotFoundError

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
OWNER = OwnerReference("v1", "Pod", "p", "uid-p", controller=True)
DEVICES = {"devices": {"requests": [{"name": "gpu"}]}}


class World:
    def __init__(self) -> None:
        self.pods: Table[PodView] = Table()
        self.claims: Table[ResourceView] = Table()
        self.templates: Table[ResourceView] = Table()
        self.controller = ResourceClaimController(self.pods, self.claims, self.templates)
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)

    def plan_pod(self) -> list[Action]:
        return self.controller.plan(f"{POD}default/p").actions

    def plan_claim(self) -> list[Action]:
        return self.controller.plan(f"{CLAIM}default/c").actions


@pytest.fixture
def world() -> World:
    return World()


def pod(*, node: str | None = None, phase: str = "Pending", deleted: bool = False) -> PodView:
    return msgspec.convert(
        {
            "metadata": {
                "name": "p",
                "uid": "uid-p",
                "namespace": "default",
                **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}),
            },
            "spec": {
                "nodeName": node,
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
            },
            "status": {"phase": phase},
        },
        PodView,
    )


def template() -> ResourceView:
    spec = {"metadata": {"labels": {"a": "b"}}, "spec": DEVICES}
    return ResourceView(Meta("one", "uid-one", "default"), spec)


def claim(
    *, of_pod: bool = True, deleted: bool = False, finalizers: tuple[str, ...] = (), **status: Any
) -> ResourceView:
    meta = Meta(
        "c",
        "uid-c",
        "default",
        resource_version="3",
        annotations={"resource.kubernetes.io/pod-claim-name": "gpu"},
        owner_references=[OWNER] if of_pod else None,
        finalizers=list(finalizers),
        deletion_timestamp="2026-01-01T00:00:00Z" if deleted else None,
    )
    return ResourceView(meta, DEVICES, status)


def consumer(uid: str = "uid-p") -> dict[str, str]:
    return {"resource": "pods", "name": "p", "uid": uid}


def test_a_claim_is_made_once_pod_and_template_are_there(world: World) -> None:
    world.pods.on_add(pod())
    assert world.plan_pod() == []
    world.enqueued.clear()
    world.templates.on_add(template())
    assert world.enqueued == [f"{POD}default/p"]

    [create] = world.plan_pod()

    assert isinstance(create, Create)
    name = create.body["metadata"].pop("name")
    assert name.startswith("p-gpu-")
    assert create == Create(
        CLAIMS,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": "p-gpu-",
                "namespace": "default",
                "labels": {"a": "b"},
                "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
                "ownerReferences": [{**msgspec.to_builtins(OWNER), "blockOwnerDeletion": True}],
            },
            "spec": DEVICES,
        },
    )
    [again] = world.plan_pod()
    assert isinstance(again, Create)
    assert again.body["metadata"]["name"] == name


def test_the_pod_is_told_what_its_claim_is_called(world: World) -> None:
    world.pods.on_add(pod())
    world.templates.on_add(template())
    world.claims.on_add(claim())
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
    body = {"metadata": {"uid": "uid-p"}, "status": status}
    assert world.plan_pod() == [Patch(f"{PODS}/p/status", body, STRATEGIC_MERGE)]


@pytest.mark.parametrize(
    "unneeded",
    [
        pytest.param(pod(node="n1", phase="Succeeded"), id="it is done"),
        pytest.param(pod(deleted=True), id="deleted before it had a node"),
    ],
)
def test_reservations_of_pods_that_do_not_need_them_end(world: World, unneeded: PodView) -> None:
    world.pods.on_add(unneeded)
    world.claims.on_add(claim(reservedFor=[consumer()], allocation={"devices": {}}))
    meta = {"uid": "uid-c", "resourceVersion": "3"}
    status: Object = {"reservedFor": [], "allocation": None}
    assert world.plan_claim() == [Patch(f"{CLAIMS}/c/status", {"metadata": meta, "status": status})]


def test_a_pod_that_runs_keeps_its_claim(world: World) -> None:
    world.pods.on_add(pod(node="n1", phase="Running"))
    world.claims.on_add(claim(reservedFor=[consumer()], allocation={"devices": {}}))
    assert world.plan_claim() == []


def test_a_pod_that_no_watch_shows_is_asked_for(world: World) -> None:
    """And its reservation ends alone: another consumer stays."""
    others = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "uid-j"}
    reserved = [consumer("uid-old"), others]
    world.claims.on_add(claim(reservedFor=reserved, allocation={"devices": {}}))
    get = Get(f"{PODS}/p")
    assert world.plan_claim() == [get]

    error = NotFoundError(404, "NotFound", "no")
    world.controller.finished(f"{CLAIM}default/c", Outcome(get, error=error))

    meta = {"uid": "uid-c", "resourceVersion": "3"}
    body = {"metadata": meta, "status": {"reservedFor": [others]}}
    assert world.plan_claim() == [Patch(f"{CLAIMS}/c/status", body)]


def test_a_deleted_claim_gives_up_its_devices_and_then_its_finalizer(world: World) -> None:
    meta = {"uid": "uid-c", "resourceVersion": "3"}
    held = claim(deleted=True, finalizers=(FINALIZER,), allocation={"devices": {}})
    world.claims.on_add(held)
    status: Object = {"reservedFor": [], "allocation": None}
    assert world.plan_claim() == [Patch(f"{CLAIMS}/c/status", {"metadata": meta, "status": status})]

    world.claims.on_update(held, claim(deleted=True, finalizers=(FINALIZER,)))
    assert world.plan_claim() == [Patch(f"{CLAIMS}/c", {"metadata": {**meta, "finalizers": []}})]


@pytest.mark.parametrize("of_pod", [True, False], ids=["made for the pod", "the user's"])
def test_the_claim_of_a_pod_that_is_done(world: World, of_pod: bool) -> None:
    world.pods.on_add(pod(node="n1", phase="Failed"))
    world.claims.on_add(claim(of_pod=of_pod))
    assert world.plan_claim() == ([Delete(f"{CLAIMS}/c", "uid-c")] if of_pod else [])
