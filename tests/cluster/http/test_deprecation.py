"""Answers about deprecated kinds say so, each time."""

import pytest

from berth.cluster.access.users import ADMIN
from tests.cluster.access.secured import Secured

CORE = "/api/v1/namespaces/default"
WARNING = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
BODY = {"metadata": {"name": "web"}}


@pytest.fixture
async def secured() -> Secured:
    secured = Secured()
    await secured.create(f"{CORE}/endpoints", {"metadata": {"name": "first"}})
    return secured


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        pytest.param("GET", "/endpoints", WARNING, id="a list"),
        pytest.param("GET", "/endpoints/first", WARNING, id="one of them"),
        pytest.param("POST", "/endpoints", WARNING, id="a new one"),
        pytest.param("GET", "/endpoints?watch=1&timeoutSeconds=1", WARNING, id="a watch"),
        pytest.param("GET", "/configmaps", None, id="another kind"),
    ],
)
async def test_deprecated_kinds(secured: Secured, method: str, path: str, want: str | None) -> None:
    await secured.server.stop()  # so that watches end
    headers = {"authorization": f"Bearer {secured.tokens.issue(ADMIN)}"}
    body = BODY if method == "POST" else None
    answer = await secured.http.request(method, f"{CORE}{path}", headers=headers, json=body)
    assert answer.is_success
    assert answer.headers.get("warning") == want


async def test_a_refusal_keeps_the_warnings(secured: Secured) -> None:
    headers = {"authorization": f"Bearer {secured.tokens.issue(ADMIN)}"}
    for path, code in (("/endpoints/none", 404), ("/endpoints?fieldSelector=x=y", 400)):
        answer = await secured.http.get(f"{CORE}{path}", headers=headers)
        assert (answer.status_code, answer.headers.get("warning")) == (code, WARNING)
