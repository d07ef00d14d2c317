"""A client certificate of the cluster, over TLS. Wall time: controllers take some."""

import asyncio
import random
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization

from berth.cluster.controllers.certificate_requests import PATH
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.runtime.certificates import KeyPair, authority
from berth.runtime.clock import RealClock
from tests.cluster.controllers.test_certificates import KEY, MOMENT, csr

pytestmark = pytest.mark.wall

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    made = EmbeddedCluster(clock=RealClock(), rng=random.Random(1))
    await made.start(0)
    working = asyncio.create_task(made.run_controllers())
    yield made
    working.cancel()
    await asyncio.wait([working])
    await made.stop()


def trusting(cluster: EmbeddedCluster) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=(cluster.authority or b"").decode())


def showing(cluster: EmbeddedCluster, certificate: bytes, folder: Path) -> ssl.SSLContext:
    """Return the TLS of a client with *certificate*."""
    key = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "client.pem"
    path.write_bytes(certificate + key)
    context = trusting(cluster)
    context.load_cert_chain(path)
    return context


async def who_am_i(cluster: EmbeddedCluster, tls: ssl.SSLContext, **headers: str) -> Any:
    async with httpx.AsyncClient(verify=tls, base_url=cluster.url) as client:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = await client.post(WHO, json=body, headers=headers)
        return answer.status_code, answer.json()


async def test_an_issued_certificate_is_its_user(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    api = await cluster.connect("test")

    async def ask(method: str, path: str, body: Any = None) -> Any:
        encoded = None if body is None else msgspec.json.encode(body)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return msgspec.json.decode(await api.request(method, path, body=encoded, content_type=kind))

    spec = {
        "request": csr("ada", "developers"),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    await ask("POST", PATH, {"metadata": {"name": "ada"}, "spec": spec})
    approval = {"type": "Approved", "status": "True", "reason": "R", "message": "m"}
    await ask("PATCH", f"{PATH}/ada/approval", {"status": {"conditions": [approval]}})
    for _ in range(1_000):
        found = await ask("GET", f"{PATH}/ada")
        if found["status"].get("certificate"):
            break
        await asyncio.sleep(0.02)
    await api.close()
    tls = showing(cluster, b64decode(found["status"]["certificate"]), tmp_path)

    code, answer = await who_am_i(cluster, tls)

    assert code == 201
    user = answer["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("ada", ["developers", "system:authenticated"])
    async with httpx.AsyncClient(verify=tls, base_url=cluster.url) as client:
        assert (await client.get("/api/v1/nodes")).status_code == 403


async def test_without_a_certificate_nothing_changes(cluster: EmbeddedCluster) -> None:
    tls = trusting(cluster)
    assert (await who_am_i(cluster, tls))[0] == 403, "anonymous"
    assert (await who_am_i(cluster, tls, authorization="Bearer wrong"))[0] == 401


async def test_a_certificate_of_another_authority_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    other = authority(now=MOMENT, name="other")
    assert isinstance(other, KeyPair)
    path = tmp_path / "other.pem"
    path.write_bytes(other.certificate + other.key)
    tls = trusting(cluster)
    tls.load_cert_chain(path)
    with pytest.raises(httpx.TransportError):
        await who_am_i(cluster, tls)
