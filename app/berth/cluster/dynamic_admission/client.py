"""Calls webhooks."""

import asyncio
import base64
import binascii
import ssl
from typing import TYPE_CHECKING, Final

import msgspec

from berth.cluster.dynamic_admission.endpoints import Address, UnreachableError, address_of
from berth.cluster.dynamic_admission.webhooks import ClientConfig, Webhook
from berth.cluster.resources import Object
from berth.cluster.storage.store import OBJECT_LIMIT, Store

if TYPE_CHECKING:
    import httpx

RESPONSE_LIMIT: Final = 2 * OBJECT_LIMIT
"""Bytes of an answer: a patch in base64 may replace the whole object."""
MOST_CLIENTS: Final = 100
"""Clients kept, one for each authority: a bound, not a policy."""


class CallError(Exception):
    """A webhook was not reached, or did not answer; the words are those of a real server."""


class WebhookClient:
    """Posts reviews. Keeps connections; :meth:`close` it once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def post(self, hook: Webhook, review: Object) -> bytes:
        """Return what *hook* answers to *review*; raise CallError."""
        import httpx  # here, for it takes 0.15 s to load, and most clusters have no webhooks

        try:
            address = address_of(hook.client_config, self._store)
        except UnreachableError as exc:
            raise CallError(f"failed to call webhook: {exc}") from exc
        shown = f'Post "{address.shown or address.url}?timeout={hook.timeout}s"'
        try:
            client = self._client(hook.client_config)
            async with asyncio.timeout(hook.timeout):
                return await self._posted(client, address, review, hook.timeout)
        except TimeoutError:
            why = "context deadline exceeded"
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, ValueError) as exc:
            why = str(exc) or type(exc).__name__
        raise CallError(f"failed to call webhook: {shown}: {why}")

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def _posted(
        self, client: "httpx.AsyncClient", address: Address, review: Object, timeout: int
    ) -> bytes:
        request = client.build_request(
            "POST",
            address.url,
            params={"timeout": f"{timeout}s"},
            content=msgspec.json.encode(review),
            headers={"content-type": "application/json", "accept": "application/json"},
            extensions={"sni_hostname": address.server_name} if address.server_name else None,
        )
        response = await client.send(request, stream=True)
        try:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > RESPONSE_LIMIT:
                    raise ValueError(f"the answer has more than {RESPONSE_LIMIT} bytes")
        finally:
            await response.aclose()
        if not response.is_success:
            raise ValueError(f"the server answered with status {response.status_code}")
        return bytes(content)

    def _client(self, config: ClientConfig) -> "httpx.AsyncClient":
        """Return the client that trusts what *config* trusts; ValueError when that is no PEM."""
        import httpx

        bundle = config.ca_bundle or ""
        known = self._clients.get(bundle)
        if known is not None:
            return known
        if len(self._clients) >= MOST_CLIENTS:
            raise ValueError(f"webhooks trust more than {MOST_CLIENTS} authorities")
        try:
            authority = base64.b64decode(bundle, validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError) as exc:
            raise ValueError("caBundle is not PEM in base64") from exc
        trusted = ssl.create_default_context(cadata=authority or None)
        client = httpx.AsyncClient(verify=trusted, trust_env=False, timeout=None)
        self._clients[bundle] = client
        return client
