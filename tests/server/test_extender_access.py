"""Client certificates at the extender port, over real TLS."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.certificates import self_signed
from app.http_server import LOOPBACK, HttpServer
from app.server.extender_access import CertificateRequired, tls_context
from tests.server.issuing import Authority, written

NOW = datetime.now(UTC)


async def hello(_request: Request) -> Response:
    return PlainTextResponse("hello")


@pytest.mark.wall
@pytest.mark.parametrize(
    ("path", "shows", "status"),
    [
        pytest.param("/extender/filter", True, 200, id="of the authority"),
        pytest.param("/extender/filter", False, 401, id="none"),
        pytest.param("/healthz", False, 200, id="probes need none"),
        pytest.param("/metrics", False, 401, id="metrics do"),
    ],
)
async def test_who_is_answered(tmp_path: Path, path: str, shows: bool, status: int) -> None:
    authority = Authority("clients", now=NOW.timestamp())
    served = self_signed([LOOPBACK], now=NOW, name="extender")
    (tmp_path / "ca.pem").write_text(authority.pem, encoding="utf-8")
    paths = ("/extender/filter", "/healthz", "/metrics")
    app = Starlette(routes=[Route(each, hello) for each in paths])
    server = HttpServer(
        CertificateRequired(app), tls=tls_context(served, client_ca=tmp_path / "ca.pem")
    )
    await server.start(LOOPBACK, 0)
    trusting = ssl.create_default_context(cadata=served.certificate.decode())
    if shows:
        trusting.load_cert_chain(*written(authority.issue("kube-scheduler"), tmp_path, "mine"))
    try:
        async with httpx.AsyncClient(verify=trusting) as client:
            answer = await client.get(server.url + path)
    finally:
        await server.stop()

    assert answer.status_code == status
    assert status == 200 or answer.json() == {"detail": "Unauthorized"}


@pytest.mark.wall
async def test_a_certificate_of_another_authority_ends_the_connection(tmp_path: Path) -> None:
    served = self_signed([LOOPBACK], now=NOW, name="extender")
    ours, others = (Authority("clients", now=NOW.timestamp()) for _ in range(2))
    (tmp_path / "ca.pem").write_text(ours.pem, encoding="utf-8")
    server = HttpServer(Starlette(), tls=tls_context(served, client_ca=tmp_path / "ca.pem"))
    await server.start(LOOPBACK, 0)
    showing = ssl.create_default_context(cadata=served.certificate.decode())
    showing.load_cert_chain(*written(others.issue("kube-scheduler"), tmp_path, "other"))
    try:
        async with httpx.AsyncClient(verify=showing) as client:
            with pytest.raises(httpx.TransportError):
                await client.get(server.url + "/extender/filter")
    finally:
        await server.stop()
