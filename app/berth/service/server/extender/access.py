"""Access to the extender endpoints: client certificates, and tokens that are authorized.

kube-scheduler can show its extenders a certificate (``tlsConfig.certFile``) and nothing else; who
asks by hand or from a program rather has a token.
"""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from berth.runtime.http_server import PEER_CERTIFICATE
from berth.service.server.access.authentication import (
    ANONYMOUS,
    Authenticator,
    UnauthenticatedError,
)
from berth.service.server.access.delegated_access import status_answer

PUBLIC: Final = frozenset({"/healthz", "/livez", "/readyz"})
"""Probes come from kubelets, which have nothing to show us."""


class ExtenderAccess:
    """Passes on calls of *application* with a certificate that *authenticator* accepts.

    The user of the certificate is not authorized further: the CA is there for these clients. All
    other calls, except :data:`PUBLIC` paths, go to *delegated*, which is the application with
    delegated access; without one they are refused.
    """

    def __init__(
        self, application: ASGIApp, *, authenticator: Authenticator, delegated: ASGIApp | None
    ) -> None:
        self._application = application
        self._authenticator = authenticator
        self._otherwise = delegated or status_answer(401, "Unauthorized", "Unauthorized")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} connections are not served")
        passes = scope["path"] in PUBLIC or await self._is_certified(scope)
        await (self._application if passes else self._otherwise)(scope, receive, send)

    async def _is_certified(self, scope: Scope) -> bool:
        certificate = scope.get("state", {}).get(PEER_CERTIFICATE)
        try:
            user = await self._authenticator.authenticate((), certificate=certificate)
        except UnauthenticatedError:
            return False
        return user is not ANONYMOUS
