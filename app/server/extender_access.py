"""Who may call the extender endpoints: clients with a certificate of one authority, if one is set.

kube-scheduler can show its extenders a certificate (``tlsConfig.certFile``) and nothing else.
"""

import ssl
from pathlib import Path
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.certificates import KeyPair, server_context
from app.http_server import PEER_CERTIFICATE

PUBLIC: Final = frozenset({"/healthz", "/livez", "/readyz"})
"""Probes come from kubelets, which have no certificate for us."""


class CertificateRequired:
    """Passes on calls with a verified client certificate, and those of :data:`PUBLIC` paths."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_one = PEER_CERTIFICATE in scope.get("state", {})
        if has_one or scope["type"] != "http" or scope["path"] in PUBLIC:
            await self._app(scope, receive, send)
            return
        await JSONResponse({"detail": "Unauthorized"}, 401)(scope, receive, send)


def tls_context(pair: KeyPair, *, client_ca: Path | None) -> ssl.SSLContext:
    """Return the TLS settings of a server with *pair*; what clients show must be of *client_ca*.

    Raises OSError or ssl.SSLError when a file cannot be used.
    """
    context = server_context(pair)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL  # see CertificateRequired
        context.load_verify_locations(cafile=client_ca)
    return context
