"""``pods/log``: lines of hollow pods, and who cannot be asked for any."""

import asyncio

import pytest

from berth.cluster.access.users import AUTHENTICATED, User
from berth.cluster.resources import Object
from tests.cluster.access.secured import rule
from tests.cluster.http.subresources.scene import CORE, ENDED, RUNNING, STARTED, Scene

LOG = f"{CORE}/pods/p/log"
FIRST = "Started image nginx on hollow node hollow"
SECOND = "Container c of pod default/p runs no process; these lines are all that it logs"
LAST = "Container c ended with exit code 3"
TERMINATED: Object = {
    "terminated": {"startedAt": STARTED, "finishedAt": ENDED, "exitCode": 3, "reason": "Error"}
}


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.create_nodes()
    return scene


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param("", [FIRST, SECOND, LAST], id="all"),
        pytest.param("container=c", [FIRST, SECOND, LAST], id="by name"),
        pytest.param("tailLines=1", [LAST], id="the last"),
        pytest.param("tailLines=0", [], id="none"),
        pytest.param("sinceSeconds=7", [LAST], id="of the last seconds"),
        pytest.param(f"sinceTime={ENDED}", [LAST], id="since a time"),
        pytest.param(
            "timestamps=true",
            [f"{STARTED} {FIRST}", f"{STARTED} {SECOND}", f"{ENDED} {LAST}"],
            id="with times",
        ),
        pytest.param("follow=true", [FIRST, SECOND, LAST], id="nothing more to come"),
    ],
)
async def test_lines(scene: Scene, query: str, want: list[str]) -> None:
    await scene.create_pod()
    await scene.report("p", "Failed", c=TERMINATED)
    assert (await scene.text(f"{LOG}?{query}")).splitlines() == want


async def test_a_limit_of_bytes(scene: Scene) -> None:
    await scene.create_pod()
    await scene.report("p", c=RUNNING)
    assert await scene.text(f"{LOG}?limitBytes=7&follow=true") == "Started"


async def test_a_pod_that_has_no_node_has_logged_nothing(scene: Scene) -> None:
    await scene.create_pod(node="")
    code, answer = await scene.secured.ask("GET", LOG)
    assert (code, answer) == (204, "")


async def test_following_until_the_container_ends(scene: Scene) -> None:
    await scene.create_pod()
    await scene.report("p", c=RUNNING)
    following = asyncio.ensure_future(scene.text(f"{LOG}?follow=true"))
    await asyncio.sleep(0)
    assert not following.done()
    await scene.report("p", "Failed", c=TERMINATED)
    assert (await following).splitlines() == [FIRST, SECOND, LAST]


async def test_following_until_the_pod_is_gone(scene: Scene) -> None:
    await scene.create_pod()
    await scene.report("p", c=RUNNING)
    following = asyncio.ensure_future(scene.text(f"{LOG}?follow=true"))
    await asyncio.sleep(0)
    await scene.secured.ask("DELETE", f"{CORE}/pods/p?gracePeriodSeconds=0")
    assert (await following).splitlines() == [FIRST, SECOND]


WAITING: Object = {"waiting": {"reason": "ImagePullBackOff"}}


@pytest.mark.parametrize(
    ("states", "query", "want"),
    [
        pytest.param(
            {},
            "",
            (
                400,
                "BadRequest",
                'container "c" in pod "p" is waiting to start: ContainerCreating',
            ),
            id="not started",
        ),
        pytest.param(
            {"c": WAITING},
            "",
            (400, "BadRequest", 'container "c" in pod "p" is waiting to start: ImagePullBackOff'),
            id="waiting",
        ),
        pytest.param(
            {"c": RUNNING},
            "previous=true",
            (400, "BadRequest", 'previous terminated container "c" in pod "p" not found'),
            id="nothing before",
        ),
        pytest.param(
            {"c": RUNNING},
            "container=x",
            (400, "BadRequest", "container x is not valid for pod p"),
            id="no such container",
        ),
        pytest.param(
            {"c": RUNNING},
            "tailLines=-2",
            (
                422,
                "Invalid",
                'PodLogOptions "p" is invalid: tailLines: Invalid value: -2: must be greater '
                "than or equal to 0",
            ),
            id="a negative number of lines",
        ),
        pytest.param(
            {"c": RUNNING},
            "limitBytes=0&sinceSeconds=0",
            (
                422,
                "Invalid",
                'PodLogOptions "p" is invalid: [limitBytes: Invalid value: 0: must be greater '
                "than 0, sinceSeconds: Invalid value: 0: must be greater than 0]",
            ),
            id="numbers that must be positive",
        ),
        pytest.param(
            {"c": RUNNING},
            "sinceTime=0000-01-01T00:00:00Z",
            (
                400,
                "BadRequest",
                'parsing time "0000-01-01T00:00:00Z" as "2006-01-02T15:04:05Z07:00"',
            ),
            id="a time that is none",
        ),
    ],
)
async def test_refusals(
    scene: Scene, states: dict[str, Object], query: str, want: tuple[int, str, str]
) -> None:
    await scene.create_pod()
    await scene.report("p", "Pending", **states)
    assert await scene.refused(f"{LOG}?{query}") == want


async def test_several_containers(scene: Scene) -> None:
    init = [{"name": "i", "image": "nginx"}]
    await scene.create_pod("p", "a", "b", initContainers=init)
    assert await scene.refused(LOG) == (
        400,
        "BadRequest",
        "a container name must be specified for pod p, choose one of: [a b] or one of the init "
        "containers: [i]",
    )


async def test_a_node_that_is_not_hollow_is_not_reached(scene: Scene) -> None:
    await scene.create_pod(node="other")
    assert await scene.refused(LOG) == (
        500,
        "",
        'Get "https://10.0.0.9:10250/containerLogs/default/p/c": '
        "dial tcp 10.0.0.9:10250: connect: connection refused",
    )


async def test_logs_are_a_right_of_their_own(scene: Scene) -> None:
    await scene.create_pod(node="")
    await scene.secured.grant("alice", rule("pods", "get"), namespace="default")
    alice = User("alice", (AUTHENTICATED,))
    assert await scene.refused(LOG, user=alice) == (
        403,
        "Forbidden",
        'pods "p" is forbidden: User "alice" cannot get resource "pods/log" in API group "" in '
        'the namespace "default"',
    )
