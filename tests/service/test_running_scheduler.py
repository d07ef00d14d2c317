"""How a running scheduler is found and trusted, over HTTPS with a kubeconfig."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from berth import cli
from berth.kube import kubeconfig
from berth.kube.kubeconfig import Access
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import KeyPair, self_signed, server_context
from berth.runtime.http_server import HttpServer
from berth.service.running_scheduler import ConfigFlags, running_scheduler
from berth.service.server.application import Application
from berth.service.server.scheduler.explain import explain_endpoints
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explainer

TOKEN = "sesame"


@pytest.fixture
def pair() -> KeyPair:
    return self_signed([LOOPBACK], now=datetime.now(UTC), name="berth")


@pytest.fixture(autouse=True)
def nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the working directory, nor the environment, nor the home has a kubeconfig."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def write_kubeconfig(
    path: Path, *, authority: bytes = b"", token: str = TOKEN, server: str = "https://127.0.0.1:1"
) -> str:
    cluster: dict[str, Any] = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = b64encode(authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(path)


@asynccontextmanager
async def serving(pair: KeyPair) -> AsyncIterator[str]:
    """Serve the explanation of default/p over HTTPS to whoever has the token; yield the URL."""
    harness = Harness()
    harness.put(node("n1"), pod("p"))
    app = Application()
    app.include_router(explain_endpoints(explainer(harness)))

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        knows = (b"authorization", f"Bearer {TOKEN}".encode()) in scope["headers"]
        refusal = JSONResponse({"kind": "Status", "message": "Unauthorized"}, 401)
        await (app if knows else refusal)(scope, receive, send)

    server = HttpServer(guarded, tls=server_context(pair))
    await server.start(LOOPBACK, 0)
    try:
        yield server.url
    finally:
        await server.stop()


async def explain(url: str, *flags: str) -> int:
    return await asyncio.to_thread(cli.main, ["explain", "p", "--server", url, *flags])


@pytest.mark.wall
@pytest.mark.parametrize("name", ["--kubeconfig", "$KUBECONFIG", "berth.kubeconfig"])
async def test_the_kubeconfig_has_the_token_and_vouches_for_the_certificate(
    name: str,
    pair: KeyPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = "berth.kubeconfig" if name == "berth.kubeconfig" else "other"
    path = write_kubeconfig(tmp_path / file, authority=pair.certificate)
    if name == "$KUBECONFIG":
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{path}")

    async with serving(pair) as url:
        status = await explain(url, *(("--kubeconfig", path) if name == "--kubeconfig" else ()))
    assert (status, capsys.readouterr().err) == (0, "")


@pytest.mark.wall
async def test_another_certificate_has_to_be_trusted_expressly(
    pair: KeyPair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_kubeconfig(tmp_path / "berth.kubeconfig")
    authority = tmp_path / "ca.crt"
    authority.write_bytes(pair.certificate)

    async with serving(pair) as url:
        assert await explain(url) == 2
        assert "name its CA with --kubeconfig or --certificate-authority" in capsys.readouterr().err
        assert await explain(url, "--certificate-authority", str(authority)) == 0
        assert await explain(url, "--insecure-skip-tls-verify") == 0


@pytest.mark.wall
async def test_without_a_token_it_is_told_what_to_do(
    pair: KeyPair, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(pair) as url:
        assert await explain(url, "--insecure-skip-tls-verify") == 2

    assert "name a kubeconfig that it accepts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("api_server", "url"),
    [
        pytest.param(None, "https://127.0.0.1:10261", id="nothing is known"),
        pytest.param("https://h:1", "https://127.0.0.1:10261", id="the cluster speaks TLS"),
        pytest.param("http://h:1", "http://127.0.0.1:10261", id="berth up --insecure"),
    ],
)
def test_the_usual_address(api_server: str | None, url: str, tmp_path: Path) -> None:
    if api_server is not None:
        write_kubeconfig(tmp_path / "berth.kubeconfig", server=api_server)

    assert running_scheduler(None, ConfigFlags()).url == url


@pytest.mark.parametrize(
    ("files", "context", "port"),
    [
        pytest.param({"berth.kubeconfig": 1}, None, 1, id="of berth up, in this folder"),
        pytest.param({".kube/config": 2}, None, 2, id="merged into the user's own"),
        pytest.param({"berth.kubeconfig": 1, ".kube/config": 2}, None, 1, id="this folder first"),
        pytest.param(
            {"berth.kubeconfig": 1, ".kube/config": 2}, "berth", 2, id="a context is of kubectl"
        ),
        pytest.param({"env": 3, "berth.kubeconfig": 1}, "berth", 3, id="$KUBECONFIG before all"),
        pytest.param({".kube/config": 0}, None, 10261, id="the user's own is of something else"),
    ],
)
def test_berth_up_says_where_its_scheduler_is(
    files: dict[str, int],
    context: str | None,
    port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, number in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        scheduler = f"https://127.0.0.1:{number}" if number else ""
        access = Access("https://127.0.0.1:6443", "u", token=TOKEN, scheduler=scheduler)
        kubeconfig.write_kubeconfig(tmp_path / name, access)
        if name == "env":
            monkeypatch.setenv("KUBECONFIG", str(tmp_path / name))

    found = running_scheduler(None, ConfigFlags(context=context))
    assert found.url == f"https://127.0.0.1:{port}"
    assert bool(found.authorization) is (port < 10)
    assert running_scheduler("https://other", ConfigFlags(context=context)).url == "https://other"


def test_a_kubeconfig_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "p", "--kubeconfig", "/nonexistent/k"]) == 2

    assert "kubeconfig /nonexistent/k: no such file" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_authority_that_is_none(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_text(content, encoding="utf-8")

    assert cli.main(["explain", "p", "--certificate-authority", str(path)]) == 2
    assert f"--certificate-authority {path}: " in capsys.readouterr().err
