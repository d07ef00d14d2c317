"""The writes of the scheduler, compared with what kube-scheduler 1.36 sends."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from berth.kube.client.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    UnavailableError,
)
from berth.kube.client.writes.pods import (
    bind,
    bound_node,
    delete_pod,
    patch_pod_status,
    status_patch,
)
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from tests.builders import pod
from tests.kube.client.fake_api import FakeApi, Request

NOW = 1795179981.7  # 2026-11-20T13:06:21.7Z
MERGE = "application/strategic-merge-patch+json"

NO_CPU = Condition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message="0/2 nodes are available: 2 Insufficient cpu.",
    observed_generation=1,
)


def earlier(**changes: Any) -> Condition:
    """Return NO_CPU as an earlier attempt left it, with changes."""
    return msgspec.structs.replace(
        NO_CPU, **{"last_transition_time": "2026-11-20T13:00:00Z", **changes}
    )


async def test_bind_posts_a_binding_with_the_uid() -> None:
    api = FakeApi()

    await bind(api, pod("plain", uid="0586ba73"), "node-a")

    assert api.requests == [
        Request(
            "POST",
            "/api/v1/namespaces/default/pods/plain/binding",
            {
                "kind": "Binding",
                "apiVersion": "v1",
                "metadata": {"name": "plain", "namespace": "default", "uid": "0586ba73"},
                "target": {"kind": "Node", "name": "node-a"},
            },
        )
    ]


async def test_bind_is_not_tried_again() -> None:
    api = FakeApi(lambda request: ServerError(500, "InternalError", "oops"))

    with pytest.raises(ServerError, match=r"^oops"):
        await bind(api, pod("plain"), "node-a")
    assert len(api.requests) == 1


async def test_delete_means_one_pod_and_not_whoever_has_its_name() -> None:
    api = FakeApi()

    assert await delete_pod(api, pod("low-b")) is True

    assert api.requests == [
        Request(
            "DELETE",
            "/api/v1/namespaces/default/pods/low-b",
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "preconditions": {"uid": "pod-default-low-b"},
            },
        )
    ]


@pytest.mark.parametrize(
    ("there", "want"),
    [
        pytest.param(pod("a", uid="u", node="n1"), "n1", id="bound: the answer was lost"),
        pytest.param(pod("a", uid="u"), "", id="not bound"),
        pytest.param(pod("a", uid="other", node="n1"), None, id="recreated meanwhile"),
        pytest.param(NotFoundError(404, "NotFound", ""), None, id="deleted meanwhile"),
    ],
)
async def test_bound_node(there: Pod | Exception, want: str | None) -> None:
    api = FakeApi(lambda _: there if isinstance(there, Exception) else msgspec.json.encode(there))

    assert await bound_node(api, pod("a", uid="u")) == want


async def test_bound_node_does_not_guess() -> None:
    api = FakeApi(lambda request: ServerError(500, "InternalError", ""))

    with pytest.raises(ServerError):
        await bound_node(api, pod("a"))


@pytest.mark.parametrize(
    ("conditions", "nominated", "condition", "nominate", "want"),
    [
        pytest.param(
            [],
            "",
            NO_CPU,
            None,
            {
                "conditions": [
                    {
                        "lastProbeTime": None,
                        "lastTransitionTime": "2026-11-20T13:06:21Z",
                        "message": "0/2 nodes are available: 2 Insufficient cpu.",
                        "observedGeneration": 1,
                        "reason": "Unschedulable",
                        "status": "False",
                        "type": "PodScheduled",
                    }
                ]
            },
            id="a first condition is the whole list",
        ),
        pytest.param(
            [Condition(type="PodScheduled", status="True")],
            "",
            Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler"),
            None,
            {
                "$setElementOrder/conditions": [
                    {"type": "PodScheduled"},
                    {"type": "DisruptionTarget"},
                ],
                "conditions": [
                    {
                        "lastProbeTime": None,
                        "lastTransitionTime": "2026-11-20T13:06:21Z",
                        "reason": "PreemptionByScheduler",
                        "status": "True",
                        "type": "DisruptionTarget",
                    }
                ],
            },
            id="a further condition goes to the end of the list",
        ),
        pytest.param(
            [earlier(message="0/1 nodes are available: 1 Insufficient cpu.")],
            "",
            NO_CPU,
            None,
            {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                "conditions": [{"message": NO_CPU.message, "type": "PodScheduled"}],
            },
            id="another message alone keeps the transition time",
        ),
        pytest.param(
            [Condition(type="Ready"), earlier(status="True", reason="Bound", message="")],
            "",
            NO_CPU,
            None,
            {
                "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
                "conditions": [
                    {
                        "lastTransitionTime": "2026-11-20T13:06:21Z",
                        "message": NO_CPU.message,
                        "reason": "Unschedulable",
                        "status": "False",
                        "type": "PodScheduled",
                    }
                ],
            },
            id="another status is a transition",
        ),
        pytest.param(
            [earlier()],
            "",
            Condition(type="PodScheduled", status="False", message=NO_CPU.message),
            None,
            {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                "conditions": [
                    {"observedGeneration": None, "reason": None, "type": "PodScheduled"}
                ],
            },
            id="fields that are emptied are null",
        ),
        pytest.param([earlier()], "", NO_CPU, None, None, id="the same condition"),
        pytest.param(
            [earlier(observed_generation=0)], "", NO_CPU, None, None, id="only another generation"
        ),
        pytest.param([], "", None, "node-a", {"nominatedNodeName": "node-a"}, id="nominated"),
        pytest.param([], "node-a", None, "", {"nominatedNodeName": None}, id="nomination cleared"),
        pytest.param([], "node-a", None, "node-a", None, id="nominated already"),
        pytest.param([], "", None, "", None, id="no nomination to clear"),
        pytest.param([], "node-a", None, None, None, id="nothing wanted"),
        pytest.param(
            [earlier()],
            "",
            NO_CPU,
            "node-a",
            {"nominatedNodeName": "node-a"},
            id="a nomination and a condition that is there",
        ),
    ],
)
def test_status_patch(
    conditions: list[Condition],
    nominated: str,
    condition: Condition | None,
    nominate: str | None,
    want: dict[str, Any] | None,
) -> None:
    body = status_patch(
        pod("p", conditions=conditions, nominated=nominated),
        condition=condition,
        nominated_node_name=nominate,
        now=NOW,
    )

    assert (None if body is None else msgspec.json.decode(body)) == (want and {"status": want})


def test_a_status_patch_has_its_fields_in_the_recorded_order() -> None:
    body = status_patch(pod("p"), condition=NO_CPU, nominated_node_name="node-a", now=NOW)

    assert body == (
        b'{"status":{"conditions":[{"lastProbeTime":null,'
        b'"lastTransitionTime":"2026-11-20T13:06:21Z",'
        b'"message":"0/2 nodes are available: 2 Insufficient cpu.","observedGeneration":1,'
        b'"reason":"Unschedulable","status":"False","type":"PodScheduled"}],'
        b'"nominatedNodeName":"node-a"}}'
    )


async def test_a_status_patch_that_changes_nothing_is_not_sent() -> None:
    api = FakeApi()

    sent = await patch_pod_status(
        api, pod("p"), None, "", clock=FakeClock(NOW), rng=random.Random(1)
    )

    assert sent is None
    assert not api.requests


async def test_a_status_patch_of_one_version_is_not_tried_again_after_a_conflict() -> None:
    api = FakeApi(lambda request: ConflictError(409, "Conflict", ""))
    with pytest.raises(ConflictError):
        await patch_pod_status(
            api,
            pod("p", version="7"),
            None,
            "n1",
            clock=FakeClock(NOW),
            rng=random.Random(1),
            only_this_version=True,
        )
    assert [request.body for request in api.requests] == [
        {"metadata": {"resourceVersion": "7"}, "status": {"nominatedNodeName": "n1"}}
    ]


@pytest.mark.parametrize(
    ("failure", "tries"),
    [
        pytest.param(ServerError(500, "InternalError", ""), 4, id="internal error"),
        pytest.param(ServerError(503, "ServiceUnavailable", ""), 4, id="service unavailable"),
        pytest.param(ConflictError(409, "Conflict", ""), 4, id="conflict"),
        pytest.param(UnavailableError("refused", sent=False), 4, id="connection refused"),
        pytest.param(UnavailableError("reset", sent=None), 1, id="answer lost"),
        pytest.param(ServerError(504, "Timeout", ""), 1, id="gateway timeout"),
        pytest.param(NotFoundError(404, "NotFound", ""), 1, id="pod gone"),
        pytest.param(ForbiddenError(403, "Forbidden", ""), 1, id="forbidden"),
    ],
)
async def test_a_status_patch_is_tried_four_times_when_it_may_help(
    failure: ApiError, tries: int
) -> None:
    api = FakeApi(lambda request: failure)
    clock = FakeClock(NOW)
    patching = asyncio.create_task(
        patch_pod_status(api, pod("p"), None, "n1", clock=clock, rng=random.Random(1)),
        name="patch",
    )
    pauses = 0.0
    while not patching.done():
        await asyncio.sleep(0)
        clock.advance(0.001)
        pauses += 0.001

    with pytest.raises(type(failure)):
        patching.result()
    assert (
        api.requests
        == [
            Request(
                "PATCH",
                "/api/v1/namespaces/default/pods/p/status",
                {"status": {"nominatedNodeName": "n1"}},
                MERGE,
            )
        ]
        * tries
    )
    if tries == 4:
        assert 0.31 <= pauses <= 0.31 * 1.1 + 0.01


async def test_a_status_patch_stops_at_success() -> None:
    answers: Iterator[bytes | Exception] = iter([ConflictError(409, "Conflict", ""), b"{}"])
    api = FakeApi(lambda request: next(answers))
    clock = FakeClock(NOW)
    patching = asyncio.create_task(
        patch_pod_status(api, pod("p"), None, "n1", clock=clock, rng=random.Random(1)),
        name="patch",
    )
    await asyncio.sleep(0)
    clock.advance(0.02)

    assert await patching is not None
    assert len(api.requests) == 2
