"""Authentication by request headers, client certificate or bearer token (spec §7.3)."""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

import msgspec
from cryptography import x509

from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.kube.client.reviews import ReviewError, User, review_token
from berth.runtime.clock import Clock
from berth.service.server.access.client_authorities import ClientAuthorities, RequestHeaders
from berth.service.server.access.client_certificates import common_name, user_of
from berth.service.server.access.expiring_cache import ExpiringCache

log = logging.getLogger(__name__)

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = User(username="system:anonymous", groups=(UNAUTHENTICATED,))

TOKENS_KEPT: Final = 4096
"""Answers about tokens, good and bad ones."""

_UNKNOWN: Final = User(username="\0")
"""Stands for a token that was not reviewed."""

Headers = Sequence[tuple[str, str]]
"""Names in lower case; a name may come several times."""


class UnauthenticatedError(Exception):
    """Whoever this is showed something that proves nothing. The message is for our log only."""


class NotReviewedError(UnauthenticatedError):
    """Whether a token proves anything is not known: the API server did not say."""


class Authenticator:
    """Finds out who sends a request, as the delegated authentication of kube-scheduler does.

    What somebody shows and is not accepted makes a request fail, unless something else that they
    show is; showing nothing makes them anonymous.
    """

    def __init__(
        self, api: Api, *, settings: ClientAuthorities, token_ttl: float, clock: Clock
    ) -> None:
        """*api* gets the TokenReviews, whose results are cached for *token_ttl* seconds."""
        self.settings = settings
        """May be replaced at any time."""
        self._api = api
        self._token_ttl = token_ttl
        self._clock = clock
        self._tokens: ExpiringCache[bytes, User | None] = ExpiringCache(
            capacity=TOKENS_KEPT, monotonic=clock.monotonic
        )

    async def authenticate(self, headers: Headers, *, certificate: bytes | None) -> User:
        """Return who sent a request with *headers*, over a connection with *certificate* (DER).

        The certificate must have been verified by the TLS handshake. Raises UnauthenticatedError,
        NotReviewedError if the API server could not be asked.
        """
        user, problem = self._by_certificate(headers, certificate)
        if user is not None:
            return _admitted(user)
        token = _bearer_token(headers)
        if token:
            owner = await self._owner(token)
            if owner is not None:
                return _admitted(owner)
            problem = "invalid bearer token"
        if problem:
            raise UnauthenticatedError(problem)
        return ANONYMOUS

    def _by_certificate(self, headers: Headers, der: bytes | None) -> tuple[User | None, str]:
        """Return the user of the certificate, or what is wrong with it."""
        if der is None:
            return None, ""
        try:
            certificate = x509.load_der_x509_certificate(der)
        except ValueError as exc:  # OpenSSL is not as strict
            return None, f"the client certificate cannot be read: {exc}"
        # Again, for connections live longer than certificates.
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            return None, "the client certificate has expired or is not yet valid"
        proxies, clients = self.settings.proxies, self.settings.clients
        if proxies is not None and proxies.authorities.have_issued(certificate):
            allowed = proxies.allowed_names
            if not allowed or common_name(certificate) in allowed:
                user = _as_told(headers, proxies)
                if user is not None:
                    return user, ""
        if clients is None:
            return None, ""
        if not clients.have_issued(certificate):
            return None, "the client certificate is of an unknown authority"
        user = user_of(certificate)
        return (user, "") if user.username else (None, "")

    async def _owner(self, token: str) -> User | None:
        # Only the digest is kept: a memory dump should hold no credentials.
        key = hashlib.sha256(token.encode()).digest()
        known = self._tokens.get(key, _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        try:
            owner = await review_token(self._api, token)
        except (ApiError, ReviewError) as exc:
            log.warning("a token could not be reviewed", extra={"error": str(exc)})
            raise NotReviewedError("the token could not be reviewed") from exc
        self._tokens.put(key, owner, seconds=self._token_ttl)
        return owner


def _admitted(user: User) -> User:
    """Return *user* as one of those who are known."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


def _bearer_token(headers: Headers) -> str:
    scheme, _, token = next(_of(headers, ("authorization",)), "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _as_told(headers: Headers, settings: RequestHeaders) -> User | None:
    """Return the user that a proxy speaks for, None when it names none."""
    username = next(_of(headers, settings.username_headers), "")
    if not username:
        return None
    return User(
        username=username,
        uid=next(_of(headers, settings.uid_headers), ""),
        groups=tuple(_of(headers, settings.group_headers)),
        extra=dict(_extra(headers, settings.extra_prefixes)),
    )


def _of(headers: Headers, names: Sequence[str]) -> Iterator[str]:
    """Yield the values of the headers with *names*, which are preferred in this order."""
    for name in names:
        yield from (value for given, value in headers if given == name.lower() and value)


def _extra(headers: Headers, prefixes: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in headers:
        for prefix in prefixes:
            if name.startswith(prefix.lower()):
                key = unquote(name[len(prefix) :])
                extra[key] = (*extra.get(key, ()), value)
    return extra
