"""HTTPS on a real port; the embedded cluster says who is who, and who may what."""

import json
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from berth.cluster.access.tokens import Tokens
from berth.cluster.access.users import SCHEDULER, User
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.kube.client.api_client import ApiClient
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import KeyPair
from berth.runtime.clock import RealClock
from berth.runtime.probes import ping
from berth.scheduler.config.options import Options
from berth.service.server.access.client_authorities import LOOKUP
from berth.service.server.access.secure_serving import SecureServer, with_delegated_access
from berth.service.server.application import Application
from berth.service.server.health import health_endpoints
from tests.service.server.access.issuing import Authority, written

pytestmark = pytest.mark.wall

CLOCK: Final = RealClock()
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
PROMETHEUS: Final = User("prometheus", ("monitoring",))
ANY_PORT: Final = {"bind_address": LOOPBACK, "secure_port": 0}


class Scene:
    """A cluster whose group ``monitoring`` may get /metrics/slis."""

    def __init__(self, cluster: EmbeddedCluster, tokens: Tokens, admin: ApiClient) -> None:
        self.cluster = cluster
        self.tokens = tokens
        self.admin = admin

    async def create(self, path: str, obj: Any) -> None:
        await self.admin.request("POST", path, body=json.dumps(obj).encode())

    @asynccontextmanager
    async def serving(self, **flags: Any) -> AsyncIterator[str]:
        """Serve health, and nothing else; yield the URL."""
        app = Application()
        app.include_router(health_endpoints({"healthz": {"ping": ping}}))
        async with AsyncExitStack() as cleanup:
            api = await self.cluster.connect("test", user=SCHEDULER)
            cleanup.push_async_callback(api.close)
            options = Options.of({**ANY_PORT, **flags})
            access = with_delegated_access(
                app,
                options.authentication,
                options.authorization,
                tokens=api,
                permissions=api,
                clock=CLOCK,
            )
            server = SecureServer(
                access,
                options.secure_serving,
                options.authentication,
                authenticator=access.authenticator,
                api=api,
                clock=CLOCK,
            )
            await server.start()
            cleanup.push_async_callback(server.stop)
            yield server.url


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    tokens = Tokens()
    cluster = EmbeddedCluster(clock=CLOCK, rng=random.Random(1), tokens=tokens)
    await cluster.start(0)
    admin = await cluster.connect("test")
    made = Scene(cluster, tokens, admin)
    rule = {"nonResourceURLs": ["/metrics/slis"], "verbs": ["get"]}
    await made.create(f"{RBAC}/clusterroles", {"metadata": {"name": "m"}, "rules": [rule]})
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "monitoring"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "m"}
    binding = {"metadata": {"name": "m"}, "roleRef": role, "subjects": [group]}
    await made.create(f"{RBAC}/clusterrolebindings", binding)
    yield made
    await admin.close()
    await cluster.stop()


async def ask(
    url: str,
    path: str,
    *,
    method: str = "GET",
    token: str = "",
    shown: tuple[str, str] | None = None,
) -> int:
    """Return the status of the answer."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if shown is not None:
        context.load_cert_chain(*shown)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(base_url=url, verify=context) as client:
        return (await client.request(method, path, headers=headers)).status_code


async def test_tokens(scene: Scene) -> None:
    allowed = scene.tokens.issue(PROMETHEUS)
    another = scene.tokens.issue(User("jane"))
    master = scene.tokens.issue(User("root", ("system:masters",)))
    async with scene.serving() as url:
        assert url.startswith("https://127.0.0.1:")
        assert [
            await ask(url, "/healthz"),
            await ask(url, "/metrics/slis"),
            await ask(url, "/metrics/slis", token="wrong"),
            await ask(url, "/metrics/slis", token=another),
            await ask(url, "/metrics/slis", token=allowed),
            await ask(url, "/metrics/slis", token=allowed, method="DELETE"),
            await ask(url, "/metrics/slis", token=master, method="DELETE"),
            await ask(url, "/openapi.json", token=allowed),
            await ask(url, "/nothing", token=master),
        ] == [200, 403, 401, 403, 200, 403, 200, 403, 404]


def client_certificate(authority: Authority, name: str, folder: Path) -> tuple[str, str]:
    pair: KeyPair = authority.issue(name, groups=["monitoring"])
    return written(pair, folder, name)


async def test_client_certificates_of_a_file(scene: Scene, tmp_path: Path) -> None:
    ours, theirs = (Authority(name, now=CLOCK.now()) for name in ("ours", "theirs"))
    (tmp_path / "ca.crt").write_text(ours.pem)
    known = client_certificate(ours, "ann", tmp_path)
    unknown = client_certificate(theirs, "eve", tmp_path)
    async with scene.serving(client_ca_file=str(tmp_path / "ca.crt")) as url:
        assert await ask(url, "/metrics/slis", shown=known) == 200
        assert await ask(url, "/openapi.json", shown=known) == 403
        assert await ask(url, "/metrics/slis") == 403
        with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
            await ask(url, "/metrics/slis", shown=unknown)


async def test_client_certificates_of_the_cluster(scene: Scene, tmp_path: Path) -> None:
    authority = Authority("cluster", now=CLOCK.now())
    patch = json.dumps({"data": {"client-ca-file": authority.pem}}).encode()
    await scene.admin.request(
        "PATCH", LOOKUP, body=patch, content_type="application/merge-patch+json"
    )
    shown = client_certificate(authority, "ann", tmp_path)
    async with scene.serving() as url:
        assert await ask(url, "/metrics/slis", shown=shown) == 200
    async with scene.serving(authentication_skip_lookup=True) as url:
        assert await ask(url, "/metrics/slis", shown=shown) == 403


async def test_a_port_can_be_shared(scene: Scene) -> None:
    async with scene.serving(permit_port_sharing=True) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            async with scene.serving(secure_port=port):
                pass
        async with scene.serving(secure_port=port, permit_port_sharing=True) as second:
            assert second == url
