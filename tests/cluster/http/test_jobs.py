"""What is particular about Jobs over HTTP."""

import httpx
import pytest

from berth.cluster.access.users import ADMIN
from berth.cluster.resources import Object
from tests.cluster.access.secured import Secured

JOBS = "/apis/batch/v1/namespaces/default/jobs"
WARNING = (
    '299 - "child pods are preserved by default when jobs are deleted; set '
    "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this "
    'warning"'
)
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
JOB: Object = {"metadata": {"name": "j"}, "spec": {"template": {"spec": POD}}}


@pytest.fixture
async def secured() -> Secured:
    secured = Secured()
    await secured.create(JOBS, JOB)
    return secured


async def ask(
    secured: Secured, method: str, path: str, body: Object | None = None
) -> httpx.Response:
    headers = {"authorization": f"Bearer {secured.tokens.issue(ADMIN)}"}
    if method == "PATCH":
        headers["content-type"] = "application/merge-patch+json"
    return await secured.http.request(method, f"{JOBS}{path}", headers=headers, json=body)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/j", WARNING, id="nobody says what becomes of the pods"),
        pytest.param("", WARNING, id="nor of those of all Jobs"),
        pytest.param("/j?propagationPolicy=Orphan", None, id="they stay"),
        pytest.param("/j?propagationPolicy=Background", None, id="they go"),
        pytest.param("/j?orphanDependents=false", None, id="they go, in the old way"),
    ],
)
async def test_a_deletion_that_leaves_the_pods_warns(
    secured: Secured, path: str, want: str | None
) -> None:
    answer = await ask(secured, "DELETE", path)
    assert answer.is_success
    assert answer.headers.get("warning") == want


async def test_jobs_are_found_by_their_successes(secured: Secured) -> None:
    async def count(successes: int) -> int:
        answer = await ask(secured, "GET", f"?fieldSelector=status.successful={successes}")
        return len(answer.json()["items"])

    assert [await count(0), await count(1)] == [1, 0]
    await ask(secured, "PATCH", "/j/status", {"status": {"succeeded": 1}})
    assert [await count(0), await count(1)] == [0, 1]


async def test_a_status_that_cannot_be_is_refused(secured: Secured) -> None:
    answer = await ask(secured, "PATCH", "/j/status", {"status": {"ready": 1}})
    assert answer.status_code == 422
    assert answer.json()["message"] == (
        'Job.batch "j" is invalid: status.ready: Invalid value: 1: cannot set more ready pods '
        "than active"
    )
