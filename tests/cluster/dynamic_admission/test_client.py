"""Calls to webhooks, over TLS on this machine."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from berth.cluster.dynamic_admission.client import CallError, WebhookClient
from berth.cluster.dynamic_admission.webhooks import ClientConfig, ServiceReference, Webhook
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from berth.runtime.certificates import KeyPair, self_signed

pytestmark = pytest.mark.wall

SERVICE = ServiceReference(namespace="n", name="hook", path="/review", port=443)


@asynccontextmanager
async def webhook(folder: Path, *, answers: bool = True) -> AsyncIterator[tuple[int, str]]:
    """Serve one page for ``hook.n.svc``; yield its port and its authority as a caBundle."""
    pair: KeyPair = self_signed(["hook.n.svc"], now=datetime.now(UTC), name="hook")
    (folder / "cert").write_bytes(pair.certificate)
    (folder / "key").write_bytes(pair.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "cert", folder / "key")
    never = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if not answers:
            await never.wait()
        line = head.split(b"\r\n")[0]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(line), line))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], base64.b64encode(pair.certificate).decode()
    finally:
        never.set()
        server.close()
        await server.wait_closed()


def store(service: Object, *slices: Object) -> Store:
    made = Store()
    made.create("services", {"metadata": {"name": "hook", "namespace": "n"}, "spec": service})
    for number, each in enumerate(slices):
        metadata = {
            "name": f"hook-{number}",
            "namespace": "n",
            "labels": {"kubernetes.io/service-name": "hook"},
        }
        made.create("endpointslices.discovery.k8s.io", {"metadata": metadata, **each})
    return made


async def call(store: Store, **config: Any) -> bytes:
    client = WebhookClient(store)
    hook = Webhook(name="a.example.com", client_config=ClientConfig(**config), timeout_seconds=1)
    try:
        return await client.post(hook, {"request": {}})
    finally:
        await client.close()


async def test_a_service_is_called_by_its_name(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (port, authority):
        endpoints = {
            "endpoints": [{"addresses": ["127.0.0.1"]}],
            "ports": [{"name": "https", "port": port}],
        }
        found = store({"ports": [{"name": "https", "port": 443}]}, endpoints)
        answer = await call(found, service=SERVICE, ca_bundle=authority)
    assert answer == b"POST /review?timeout=1s HTTP/1.1"


async def test_a_service_may_be_a_name_outside(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (port, authority):
        found = store({"type": "ExternalName", "externalName": "127.0.0.1"})
        service = msgspec.structs.replace(SERVICE, port=port)
        answer = await call(found, service=service, ca_bundle=authority)
    assert answer.startswith(b"POST /review")


async def test_a_url_must_have_a_certificate_of_its_host(tmp_path: Path) -> None:
    async with webhook(tmp_path) as (port, authority):
        with pytest.raises(CallError, match=f'Post "https://127.0.0.1:{port}/\\?timeout=1s": '):
            await call(Store(), url=f"https://127.0.0.1:{port}/", ca_bundle=authority)


async def test_a_webhook_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    async with webhook(tmp_path, answers=False) as (port, authority):
        found = store({"type": "ExternalName", "externalName": "127.0.0.1"})
        service = msgspec.structs.replace(SERVICE, port=port)
        with pytest.raises(CallError, match="context deadline exceeded"):
            await call(found, service=service, ca_bundle=authority)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(Store(), 'service "hook" not found', id="no service"),
        pytest.param(
            store({"ports": [{"port": 80}]}),
            'no service port 443 found for service "hook"',
            id="another port",
        ),
        pytest.param(
            store({"ports": [{"port": 443}]}),
            'no endpoints available for service "hook"',
            id="no endpoints",
        ),
        pytest.param(
            store(
                {"ports": [{"port": 443}]},
                {
                    "endpoints": [{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod"}}],
                    "ports": [{"port": 8443}],
                },
            ),
            'no endpoints available for service "hook": hollow pods serve nothing',
            id="hollow pods only",
        ),
    ],
)
async def test_nothing_is_behind_a_service(found: Store, why: str) -> None:
    with pytest.raises(CallError) as failed:
        await call(found, service=SERVICE)
    assert str(failed.value) == f"failed to call webhook: {why}"
