"""Who is answered at the extender port: certificates and tokens, over real TLS."""

import random
import ssl
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest
from starlette.types import Receive, Scope, Send

from berth.cli.flags.extender_port import add_extender_flags
from berth.cli.flags.extender_port import extender_port as extender_port_of
from berth.cluster.access.tokens import Tokens
from berth.cluster.access.users import SCHEDULER, User
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import KeyPair
from berth.runtime.clock import FakeClock, RealClock
from berth.runtime.http_server import PEER_CERTIFICATE
from berth.service.extender_port import listening
from berth.service.server.access.authentication import Authenticator
from berth.service.server.access.client_authorities import ClientAuthorities
from berth.service.server.access.client_certificates import CertificateAuthorities
from berth.service.server.application import Application
from berth.service.server.extender.access import ExtenderAccess
from berth.service.server.extender.application import extender_application
from berth.service.server.health import extender_probes
from tests.kube.client.fake_api import FakeApi
from tests.service.server.access.issuing import Authority, der, written

CLOCK: Final = RealClock()
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ASKER: Final = User("asker")
STRANGER: Final = User("stranger")
TOKENS: Final = "--authentication-token-webhook"
PATHS: Final = (
    ("GET", "/readyz"),
    ("POST", "/extender/filter"),
    ("POST", "/extender/binpack/filter"),
    ("GET", "/metrics/slis"),
)
REFUSED: Final = [200, 401, 401, 401]
ALL: Final = [200, 200, 200, 200]


def answering() -> Application:
    """Return an application of the extender port whose every question has the same answer."""
    app = extender_application(
        probes=extender_probes(is_synced=lambda: True, is_terminating=lambda: False)
    )

    async def filtered() -> str:
        return "done"

    for path in ("/extender/filter", "/extender/binpack/filter"):
        app.add_api_route(path, filtered, methods=["POST"])
    return app


class Scene:
    """An API server that lets ``asker`` post to /extender/, and what proves who one is."""

    def __init__(self, cluster: EmbeddedCluster, tokens: Tokens, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.authority = Authority("clients", now=CLOCK.now())
        self.ca = folder / "ca.pem"
        self.ca.write_text(self.authority.pem, encoding="utf-8")
        self.tokens = {user.name: tokens.issue(user) for user in (ASKER, STRANGER)}

    @asynccontextmanager
    async def port(self, *flags: str) -> AsyncIterator[str]:
        """Serve with *flags*; yield the URL."""
        parser = ArgumentParser()
        add_extender_flags(parser, default=0)
        asked = extender_port_of(parser.parse_args(flags))
        assert asked is not None
        async with AsyncExitStack() as cleanup:
            api = await self.cluster.connect("test", user=SCHEDULER)
            cleanup.push_async_callback(api.close)
            yield (
                await cleanup.enter_async_context(
                    listening(asked, answering(), reviews=api, clock=CLOCK)
                )
            ).url

    def shown(self, pair: KeyPair | None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if pair is not None:
            context.load_cert_chain(*written(pair, self.folder, "shown"))
        return context

    async def ask(self, url: str, *, token: str = "", pair: KeyPair | None = None) -> list[int]:
        """Return the statuses of the answers at PATHS."""
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(base_url=url, verify=self.shown(pair)) as client:
            return [(await client.request(*each, headers=headers)).status_code for each in PATHS]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    tokens = Tokens()
    cluster = EmbeddedCluster(clock=CLOCK, rng=random.Random(1), tokens=tokens)
    await cluster.start(0)
    admin = await cluster.connect("test")
    rule = {"nonResourceURLs": ["/extender/*"], "verbs": ["post"]}
    group = "rbac.authorization.k8s.io"
    for path, obj in (
        ("clusterroles", {"metadata": {"name": "ask"}, "rules": [rule]}),
        ("clusterrolebindings", {
            "metadata": {"name": "ask"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "ask"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "asker"}],
        }),
    ):  # fmt: skip
        await admin.request("POST", f"{RBAC}/{path}", body=msgspec.json.encode(obj))
    yield Scene(cluster, tokens, tmp_path)
    await admin.close()
    await cluster.stop()


@pytest.mark.wall
async def test_certificates_alone(scene: Scene) -> None:
    async with scene.port(f"--client-ca-file={scene.ca}") as url:
        assert url.startswith("https://")
        assert await scene.ask(url) == REFUSED
        assert await scene.ask(url, token=scene.tokens["asker"]) == REFUSED
        assert await scene.ask(url, pair=scene.authority.issue("kube-scheduler")) == ALL
        with pytest.raises(httpx.TransportError):
            await scene.ask(url, pair=Authority("others", now=CLOCK.now()).issue("kube-scheduler"))


@pytest.mark.wall
async def test_tokens_alone(scene: Scene) -> None:
    async with scene.port(TOKENS, f"--bind-address={LOOPBACK}") as url:
        assert url.startswith("https://")
        assert await scene.ask(url) == [200, 403, 403, 403]
        assert await scene.ask(url, token="wrong") == REFUSED
        assert await scene.ask(url, token=scene.tokens["stranger"]) == [200, 403, 403, 403]
        assert await scene.ask(url, token=scene.tokens["asker"]) == [200, 200, 200, 403]


@pytest.mark.wall
async def test_whom_a_certificate_names_needs_no_right_beside_tokens(scene: Scene) -> None:
    async with scene.port(TOKENS, f"--client-ca-file={scene.ca}") as url:
        assert await scene.ask(url, pair=scene.authority.issue("nobody")) == ALL
        assert await scene.ask(url, token=scene.tokens["asker"]) == [200, 200, 200, 403]
        assert await scene.ask(url, token="wrong") == REFUSED


@pytest.mark.wall
async def test_without_either_everybody_is_answered(scene: Scene) -> None:
    async with scene.port("--allow-unauthenticated") as url:
        assert url.startswith("http://")
        assert await scene.ask(url) == ALL
    shown = written(scene.authority.issue("berth"), scene.folder, "served")
    flags = (f"--tls-cert-file={shown[0]}", f"--tls-private-key-file={shown[1]}")
    async with scene.port(*flags) as url:
        assert url.startswith("https://")
        assert await scene.ask(url) == ALL


@pytest.mark.parametrize(
    ("at", "is_answered"),
    [
        pytest.param(CLOCK.now(), True, id="valid"),
        pytest.param(CLOCK.now() + 3 * 86_400, False, id="expired since the connection was made"),
    ],
)
async def test_connections_outlive_certificates(at: float, is_answered: bool) -> None:
    authority = Authority("clients", now=CLOCK.now())
    authenticator = Authenticator(
        FakeApi(),
        settings=ClientAuthorities(clients=CertificateAuthorities(authority.pem)),
        token_ttl=10.0,
        clock=FakeClock(at),
    )
    access = ExtenderAccess(answering(), authenticator=authenticator, delegated=None)
    certificate = der(authority.issue("kube-scheduler"))

    async def over_tls(scope: Scope, receive: Receive, send: Send) -> None:
        await access({**scope, "state": {PEER_CERTIFICATE: certificate}}, receive, send)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(over_tls), base_url="http://berth"
    ) as client:
        answer = await client.post("/extender/filter")
    assert answer.status_code == (200 if is_answered else 401)
    assert is_answered or answer.json()["message"] == "Unauthorized"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Content-Type": "application/json"}, 200, id="a program"),
        pytest.param({"Host": "evil.example"}, 421, id="a page that calls us its own"),
        pytest.param({"Content-Type": "text/plain"}, 415, id="a page that posts elsewhere"),
    ],
)
async def test_who_trusts_this_machine_does_not_trust_its_browsers(
    scene: Scene, headers: dict[str, str], status: int
) -> None:
    async with scene.port() as url, httpx.AsyncClient(base_url=url) as client:
        assert (await client.post("/extender/filter", headers=headers)).status_code == status


async def test_who_lets_anybody_ask_may_be_called_anything(scene: Scene) -> None:
    headers = {"Host": "berth.mesh:10262", "Content-Type": "application/json"}
    async with (
        scene.port("--allow-unauthenticated") as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        assert (await client.post("/extender/filter", headers=headers)).status_code == 200
