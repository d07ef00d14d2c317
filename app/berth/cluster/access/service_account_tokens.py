"""Tokens of service accounts: JWTs, good while all that they are bound to exists.

The claims are those of a real API server (``pkg/serviceaccount`` in Kubernetes): tokens from
TokenRequests have them under ``kubernetes.io``, those in Secrets as ``kubernetes.io/...``.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from berth.cluster.access.signing_key import BadSignatureError, SigningKey
from berth.cluster.access.users import User, service_account, service_account_user
from berth.cluster.resources import Object
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.runtime.clock import Clock

ISSUER: Final = "https://kubernetes.default.svc"
API_AUDIENCE: Final = ISSUER
"""Whom tokens are for that do not say it."""

LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
LEGACY_CLAIM: Final = "kubernetes.io/serviceaccount/"
CLAIM: Final = "kubernetes.io"
EXTRA: Final = "authentication.kubernetes.io/"

SERVICE_ACCOUNTS_KEY: Final = "serviceaccounts"
"""Where the store keeps them."""

BOUND: Final = {"pod": "pods", "node": "nodes", "secret": "secrets"}
"""What a token can be bound to: claim, and where the store keeps it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An object that a token needs."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Whose token it is, and for whom."""

    user: User
    audiences: tuple[str, ...] = (API_AUDIENCE,)


INVALID_TOKEN: Final = "invalid bearer token"


class InvalidTokenError(Exception):
    """A token that is not good; the message says why, to TokenReviews only."""


class ServiceAccountTokens:
    """Signs them, and says whose they are."""

    def __init__(self, key: SigningKey, store: Store, *, clock: Clock) -> None:
        self.key = key
        self._store = store
        self._clock = clock

    def issue(
        self,
        account: Stored,
        *,
        token_id: str,
        seconds: int,
        audiences: Sequence[str],
        bound: dict[str, Bound],
    ) -> str:
        """Return a new token of a service account that is stored.

        *token_id* is a new uid; *bound* has the kinds of :data:`BOUND` as its keys.
        """
        namespace, name = account.key
        now = int(self._clock.now())
        needed = {"serviceaccount": Bound(name, account.uid), **bound}
        return self.key.sign(
            {
                "aud": list(audiences),
                "exp": now + seconds,
                "iat": now,
                "iss": ISSUER,
                "jti": token_id,
                CLAIM: {
                    "namespace": namespace,
                    **{each: {"name": of.name, "uid": of.uid} for each, of in needed.items()},
                },
                "nbf": now,
                "sub": service_account_user(namespace, name),
            }
        )

    def authenticate(self, token: str) -> Authenticated:
        """Return whose token it is, if it is good now; else raise InvalidTokenError."""
        try:
            claims = self.key.verify(token)
        except BadSignatureError as exc:
            raise InvalidTokenError(INVALID_TOKEN) from exc
        match claims.get("iss"):
            case str(issuer) if issuer == ISSUER:
                return self._of_request(claims)
            case str(issuer) if issuer == LEGACY_ISSUER:
                return self._of_secret(claims, token)
        raise InvalidTokenError(INVALID_TOKEN)

    def _of_request(self, claims: Any) -> Authenticated:
        now = self._clock.now()
        if claims["exp"] <= now:
            raise InvalidTokenError("service account token has expired")
        if claims["nbf"] > now:
            raise InvalidTokenError("service account token is not valid yet")
        about = claims[CLAIM]
        namespace, account = about["namespace"], about["serviceaccount"]
        self._check_account(namespace, account["name"], account["uid"])
        extra = {f"{EXTRA}credential-id": (f"JTI={claims['jti']}",)}
        for kind, key in BOUND.items():
            if kind not in about:
                continue
            name, uid = about[kind]["name"], about[kind].get("uid", "")
            # The node that a pod runs on is told, not required; a token may be bound to a node.
            if kind != "node" or "pod" not in about:
                self._check_bound(kind, key, "" if kind == "node" else namespace, name, uid)
            if kind != "secret":
                extra[f"{EXTRA}{kind}-name"] = (name,)
                if uid:
                    extra[f"{EXTRA}{kind}-uid"] = (uid,)
        user = service_account(namespace, account["name"], uid=account["uid"], extra=extra)
        return Authenticated(user, tuple(claims["aud"]))

    def _of_secret(self, claims: Any, token: str) -> Authenticated:
        namespace, secret, name, uid = (
            claims[LEGACY_CLAIM + each]
            for each in ("namespace", "secret.name", "service-account.name", "service-account.uid")
        )
        try:
            kept = self._store.get(BOUND["secret"], namespace, secret).decode().get("data") or {}
        except NotFoundError as exc:
            raise InvalidTokenError("service account token has been invalidated") from exc
        if kept.get("token") != in_secret(token):
            raise InvalidTokenError("service account token does not match server's copy")
        self._check_account(namespace, name, uid)
        return Authenticated(service_account(namespace, name, uid=uid))

    def _check_account(self, namespace: str, name: str, uid: str) -> None:
        try:
            found = self._store.get(SERVICE_ACCOUNTS_KEY, namespace, name).uid
        except NotFoundError as exc:
            raise InvalidTokenError(f'serviceaccounts "{name}" not found') from exc
        if found != uid:
            raise InvalidTokenError(f"service account UID ({found}) does not match claim ({uid})")

    def _check_bound(self, kind: str, key: str, namespace: str, name: str, uid: str) -> None:
        try:
            found = self._store.get(key, namespace, name).uid
        except NotFoundError as exc:
            raise InvalidTokenError("service account token has been invalidated") from exc
        if found != uid:
            raise InvalidTokenError(
                f"{kind} UID ({found}) does not match service account {kind} ref claim ({uid})"
            )


def legacy_claims(namespace: str, secret: str, account: Bound) -> Object:
    """Return the claims of a token that is kept in a Secret. It never expires."""
    about = {
        "namespace": namespace,
        "secret.name": secret,
        "service-account.name": account.name,
        "service-account.uid": account.uid,
    }
    return {
        "iss": LEGACY_ISSUER,
        **{LEGACY_CLAIM + key: value for key, value in about.items()},
        "sub": service_account_user(namespace, account.name),
    }


def in_secret(text: str) -> str:
    """Return a text as the data of a Secret have it."""
    return base64.b64encode(text.encode()).decode()
