"""Why a workload has no pods, as its controller tells."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import pytest

from berth.insight.explain.workload import Workload
from berth.kube.client.errors import ForbiddenError
from berth.service.missing_pods import COMBINED, MissingPods

EXCEEDED: Final = 'pods "web-1" is forbidden: exceeded quota: compute'


class Server:
    """Answers lists; anything that is not in it is forbidden."""

    def __init__(self, lists: Mapping[str, list[dict[str, Any]]]) -> None:
        self.lists = lists
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        assert (method, body) == ("GET", None)
        self.asked.append((path, params or {}))
        kind = path.rpartition("/")[2]
        if kind not in self.lists:
            raise ForbiddenError(403, "Forbidden", "no")
        return json.dumps({"items": self.lists[kind]}).encode()

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError(path)


def event(
    kind: str, name: str, message: str, *, at: str = "1", reason: str = "FailedCreate"
) -> Any:
    about = {"kind": kind, "name": name}
    return {"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": at}


def failing(message: str) -> Any:
    condition = {"type": "ReplicaFailure", "status": "True", "message": message}
    return {"spec": {"replicas": 3}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("lists", "workload", "num_pods", "why"),
    [
        pytest.param(
            {"deployments": [failing(EXCEEDED)]}, "deploy/web", 0, EXCEEDED, id="a condition"
        ),
        pytest.param(
            {"deployments": [failing(EXCEEDED)]}, "deploy/web", 2, EXCEEDED, id="some are missing"
        ),
        pytest.param({"deployments": [failing(EXCEEDED)]}, "deploy/web", 3, "", id="none is"),
        pytest.param(
            {
                "deployments": [{"spec": {"replicas": 2}}],
                "events": [
                    event("ReplicaSet", "web-75d", "old", at="2026-01-01T00:00:00Z"),
                    event("ReplicaSet", "web-75d", EXCEEDED, at="2026-01-01T00:01:00Z"),
                    event("ReplicaSet", "web-api-75d", "of another", at="2026-01-01T00:02:00Z"),
                    event("ReplicaSet", "web-75d", "else", at="2026-01-02", reason="FailedDelete"),
                ],
            },
            "deployment/web",
            0,
            EXCEEDED,
            id="the last event of its ReplicaSet",
        ),
        pytest.param(
            {"statefulsets": [{}], "events": [event("StatefulSet", "db", COMBINED + EXCEEDED)]},
            "sts/db",
            0,
            EXCEEDED,
            id="an event of its own",
        ),
        pytest.param(
            {"cronjobs": [{}], "events": [event("Job", "report-29401234", EXCEEDED)]},
            "cronjob/report",
            0,
            EXCEEDED,
            id="an event of the Job of a CronJob",
        ),
        pytest.param(
            {"cronjobs": [{"spec": {"suspend": True}}]},
            "cj/report",
            0,
            "it is suspended",
            id="suspended",
        ),
        pytest.param(
            {"replicasets": [{"spec": {"replicas": 0}}]}, "rs/web", 0, "it is scaled to 0", id="0"
        ),
        pytest.param(
            {"jobs": [{"status": {"conditions": [{"type": "Complete", "status": "True"}]}}]},
            "job/sums",
            0,
            "it has finished",
            id="a Job that has finished",
        ),
        pytest.param(
            {"daemonsets": [{"status": {"observedGeneration": 1}}]},
            "ds/agent",
            0,
            "no node is to run it",
            id="a DaemonSet for no node",
        ),
        pytest.param({"deployments": []}, "deployment/web", 0, None, id="there is none"),
        pytest.param({}, "deployment/web", 0, None, id="it may not be listed"),
        pytest.param(
            {"deployments": [{"spec": {"replicas": 1}}]}, "deployment/web", 0, "", id="no events"
        ),
    ],
)
async def test_why_there_are_no_more_pods(
    lists: Mapping[str, Any], workload: str, num_pods: int, why: str | None
) -> None:
    asked = MissingPods(Server(lists))

    assert await asked.why("shop", Workload.parse(workload), num_pods=num_pods) == why


async def test_only_names_get_into_paths() -> None:
    server = Server({})
    asked = MissingPods(server)

    assert await asked.why("../kube-system", Workload("job", "a"), num_pods=0) is None
    assert await asked.why("shop", Workload("job", "a,type=x"), num_pods=0) is None
    assert server.asked == []
