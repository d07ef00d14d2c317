"""Resource quotas: what their controller counts, and when."""

import asyncio
from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.informers import Kind
from berth.cluster.controllers.resource_quota import PAUSE, RESYNC, ResourceQuotaController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.kinds.builtin import STORED, find
from berth.cluster.object_views import Meta, ObjectView
from berth.cluster.pods.controllers import PodSpecView, PodView
from berth.cluster.resources import Object
from berth.kube.client.errors import ForbiddenError
from berth.runtime.clock import FakeClock
from tests.cluster.controllers.live import Cluster, running
from tests.cluster.objects import pod_view

KEY = "default/quota"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
STATUS = "/api/v1/namespaces/default/resourcequotas/quota/status"


def quota(
    hard: Object, *, version: str = "7", status: Object | None = None, **spec: Any
) -> ResourceView:
    metadata = Meta("quota", "u", "default", version)
    return ResourceView(metadata, spec={"hard": hard, **spec}, status=status or {})


def running_pod(cpu: str = "1", **metadata: Any) -> Object:
    resources = {"requests": {"cpu": cpu}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "resources": resources}]}}


class World:
    """A controller, and the API server that it asks."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.quotas: Table[ResourceView] = Table()
        self.pods: Table[PodView] = Table()
        self.secrets: Table[ObjectView] = Table()
        self.controller = ResourceQuotaController(self.quotas, STORED, clock=self.clock)
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        self.controller.follow(
            [Kind(find("", "v1", "pods"), self.pods), Kind(find("", "v1", "secrets"), self.secrets)]
        )
        self.lists: dict[str, Object] = {}

    def count(self) -> list[Patch]:
        """Let the controller count; return what it reports."""
        plan = self.controller.plan(KEY)
        assert plan.again == 0.0
        for action in plan.actions:
            assert isinstance(action, Get)
            answer = msgspec.json.encode(self.lists[action.path])
            self.controller.finished(KEY, Outcome(action, answer))
        plan = self.controller.plan(KEY)
        assert plan.again == RESYNC
        return [action for action in plan.actions if isinstance(action, Patch)]


@pytest.fixture
def world() -> World:
    return World()


def test_a_new_quota_is_counted(world: World) -> None:
    world.quotas.on_add(
        quota({"pods": "9", "requests.cpu": "4", "secrets": 5, "count/secrets": "5"})
    )
    world.lists = {
        PODS: {"items": [running_pod("500m"), running_pod(), {
            **running_pod("64"), "status": {"phase": "Failed"}
        }]},
        SECRETS: {"items": [{}], "metadata": {"remainingItemCount": 2}},
    }  # fmt: skip
    (report,) = world.count()
    assert report == Patch(
        STATUS,
        {
            "metadata": {"uid": "u", "resourceVersion": "7"},
            "status": {
                "hard": {"pods": "9", "requests.cpu": "4", "secrets": "5", "count/secrets": "5"},
                "used": {
                    "pods": "2",
                    "requests.cpu": "1500m",
                    "secrets": "3",
                    "count/secrets": "3",
                },
            },
        },
    )


def test_what_is_known_is_not_told_again(world: World) -> None:
    hard = {"pods": "9"}
    world.quotas.on_add(quota(hard, status={"hard": hard, "used": {"pods": "1"}}))
    world.lists = {PODS: {"items": [running_pod()]}}
    assert world.count() == []


def test_only_pods_in_scope_count(world: World) -> None:
    world.quotas.on_add(quota({"pods": "9", "secrets": "1"}, scopes=["Terminating"]))
    with_end = running_pod()
    with_end["spec"]["activeDeadlineSeconds"] = 5
    world.lists = {PODS: {"items": [running_pod(), with_end]}, SECRETS: {"items": [{}]}}
    (report,) = world.count()
    assert report.body["status"]["used"] == {"pods": "1", "secrets": "0"}


def test_what_is_limited_no_more_is_taken_out(world: World) -> None:
    before = {"hard": {"pods": "1", "secrets": "1"}, "used": {"pods": "1", "secrets": "1"}}
    world.quotas.on_add(quota({"pods": "2"}, status=before))
    world.lists = {PODS: {"items": [running_pod()]}}
    (report,) = world.count()
    assert report.body["status"] == {
        "hard": {"pods": "2", "secrets": None},
        "used": {"pods": "1", "secrets": None},
    }


def test_counting_is_for_what_is_used_no_longer(world: World) -> None:
    first = quota({"pods": "9"})
    world.quotas.on_add(first)
    world.quotas.on_update(first, quota({"pods": "9"}, version="8", status={"used": {"pods": "1"}}))
    world.pods.on_add(pod_view("p"))
    world.secrets.on_add(ObjectView(Meta("s", "s", "default")))
    world.secrets.on_delete(ObjectView(Meta("s", "s", "default")))
    elsewhere = msgspec.structs.replace(pod_view("p").metadata, namespace="other", uid="other")
    world.pods.on_delete(msgspec.structs.replace(pod_view("p"), metadata=elsewhere))
    assert world.enqueued == [KEY]

    world.pods.on_delete(pod_view("p"))
    finished = pod_view("q", phase="Succeeded")
    world.pods.on_update(pod_view("q"), finished)
    assert world.enqueued == [KEY] * 3

    ends = msgspec.structs.replace(pod_view("r"), spec=PodSpecView(active_deadline_seconds=5))
    world.pods.on_update(pod_view("r"), ends)
    world.pods.on_update(ends, ends)
    assert world.enqueued == [KEY] * 4


def test_what_changes_during_a_count_is_counted_after_a_pause(world: World) -> None:
    world.quotas.on_add(quota({"pods": "9"}))
    (get,) = world.controller.plan(KEY).actions
    world.pods.on_delete(pod_view("p"))
    world.controller.finished(KEY, Outcome(get, b'{"items": []}'))
    report = world.controller.plan(KEY)
    assert (len(report.actions), report.again) == (1, PAUSE)

    assert world.controller.plan(KEY).actions == []
    world.clock.advance(PAUSE)
    assert world.controller.plan(KEY).actions == [get]


def new_pod(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def until_used(cluster: Cluster, want: Object) -> None:
    while True:
        found = await cluster.ask("GET", STATUS.removesuffix("/status"))
        if (found.get("status") or {}).get("used") == want:
            return
        await asyncio.sleep(0.02)


@pytest.mark.wall
async def test_room_comes_back() -> None:
    async with running() as cluster:
        hard = {"pods": "2", "count/secrets": "1"}
        body = {"metadata": {"name": "quota"}, "spec": {"hard": hard}}
        await cluster.ask("POST", "/api/v1/namespaces/default/resourcequotas", body)
        await until_used(cluster, {"pods": "0", "count/secrets": "0"})
        for name in ("a", "b"):
            await cluster.ask("POST", PODS, new_pod(name))
        with pytest.raises(ForbiddenError):
            await cluster.ask("POST", PODS, new_pod("c"))
        await cluster.ask("DELETE", f"{PODS}/a")
        await until_used(cluster, {"pods": "1", "count/secrets": "0"})
        await cluster.ask("POST", PODS, new_pod("c"))


def test_an_object_that_cannot_be_read_counts_as_one(world: World) -> None:
    world.quotas.on_add(quota({"pods": "9", "requests.cpu": "9"}))
    bad = {"metadata": {"name": "bad"}, "spec": {"containers": [None]}}
    world.lists[PODS] = {"metadata": {}, "items": [running_pod("1"), bad, running_pod("2")]}
    [report] = world.count()
    assert report.body["status"]["used"] == {"pods": "3", "requests.cpu": "3"}
