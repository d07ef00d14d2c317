"""healthz, livez and readyz: whole, in parts, and with some left out."""

import pytest

from berth.cluster.http.health import DOCUMENT_HOOKS, POST_START_HOOKS
from tests.cluster.serving import Serving

HOOKS = (
    "".join(f"[+]poststarthook/{name} ok\n" for name in POST_START_HOOKS)
    + "[+]autoregister-completion ok\n"
    + "".join(f"[+]poststarthook/{name} ok\n" for name in DOCUMENT_HOOKS)
)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/healthz", "ok", id="in short"),
        pytest.param("/healthz/ping", "ok", id="one check"),
        pytest.param("/readyz/etcd", "ok", id="the store"),
        pytest.param(
            "/readyz/poststarthook/rbac/bootstrap-roles", "ok", id="what is done at start"
        ),
        pytest.param(
            "/livez?verbose",
            f"[+]ping ok\n[+]log ok\n[+]etcd ok\n{HOOKS}livez check passed\n",
            id="every check",
        ),
        pytest.param(
            "/readyz?verbose=1&exclude=etcd&exclude=teapot",
            "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]etcd-readiness ok\n"
            f"[+]informer-sync ok\n{HOOKS}[+]shutdown ok\n"
            'warn: some health checks cannot be excluded: no matches for "teapot"\n'
            "readyz check passed\n",
            id="without one",
        ),
    ],
)
async def test_healthy(path: str, want: str) -> None:
    answer = await Serving().http.get(path)
    assert (answer.status_code, answer.text) == (200, want)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_server_that_creates_its_first_objects_is_not_ready() -> None:
    serving = Serving()
    serving.server.is_starting = True
    answer = await serving.http.get("/readyz")
    assert answer.status_code == 500
    assert "[-]poststarthook/bootstrap-controller failed: reason withheld\n" in answer.text
    answer = await serving.http.get("/healthz/poststarthook/rbac/bootstrap-roles")
    assert (answer.status_code, answer.text) == (500, "internal server error: not finished\n")


async def test_a_server_that_stops_is_not_ready_but_alive() -> None:
    serving = Serving()
    await serving.server.stop()
    answer = await serving.http.get("/readyz")
    assert answer.status_code == 500
    assert answer.text.endswith("[-]shutdown failed: reason withheld\nreadyz check failed\n")
    answer = await serving.http.get("/readyz/shutdown")
    assert (answer.status_code, answer.text) == (
        500,
        "internal server error: process is shutting down\n",
    )
    assert (await serving.http.get("/livez")).text == "ok"


async def test_a_check_that_is_none() -> None:
    assert (await Serving().http.get("/healthz/teapot")).status_code == 404
