"""``berth explain --service``: through an API server to the pod of a scheduler."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explainer
from tests.kube.client.forwarding_api import ApiServer

from berth import cli
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import self_signed, server_context
from berth.runtime.http_server import HttpServer
from berth.service.server.application import Application
from berth.service.server.scheduler.explain import explain_endpoints

pytestmark = pytest.mark.wall


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """In front of a scheduler with a pending pod, whose authority is ``ca.crt``."""
    harness = Harness()
    harness.put(node("n1", cpu=1), pod("p", cpu=2))
    application = Application()
    application.include_router(explain_endpoints(explainer(harness)))
    pair = self_signed(["berth.berth.svc"], now=datetime.now(UTC), name="berth")
    (tmp_path / "ca.crt").write_bytes(pair.certificate)
    server = HttpServer(application, tls=server_context(pair))
    await server.start(LOOPBACK, 0)
    api = ApiServer(server.port)
    async with api.running() as url:
        kubeconfig = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": "of-the-kubeconfig"}}],
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig), encoding="utf-8")
        yield api
    await server.stop()


async def explained(folder: Path, *flags: str) -> int:
    kubeconfig = folder / "kubeconfig"
    argv = ["explain", "p", "--service=berth/berth", f"--kubeconfig={kubeconfig}", *flags]
    return await asyncio.to_thread(cli.main, argv)


async def test_the_scheduler_behind_it_answers(
    api: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await explained(tmp_path, f"--certificate-authority={tmp_path / 'ca.crt'}") == 0
    assert "nearest is n1: request 1000m cpu less" in capsys.readouterr().out
    assert set(api.tokens) == {"Bearer of-the-kubeconfig"}


async def test_another_authority_is_not_trusted(
    api: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = self_signed(["other"], now=datetime.now(UTC), name="other")
    (tmp_path / "other.crt").write_bytes(other.certificate)
    assert await explained(tmp_path, f"--certificate-authority={tmp_path / 'other.crt'}") == 2
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().err


async def test_why_nobody_can_be_reached(
    api: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.status = 403
    assert await explained(tmp_path) == 2
    why = "you may not get and create pods/portforward in namespace berth (403)"
    assert f"no scheduler answers at https://berth.berth.svc: forbidden: {why}" in (
        capsys.readouterr().err
    )
