"""Secrets of the type ``kubernetes.io/service-account-token``: a token that does not expire.

As the token controller of kube-controller-manager: a Secret that names a service account gets its
token, and is deleted when there is no such account.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from berth.cluster.access.service_account_tokens import Bound, in_secret, legacy_claims
from berth.cluster.access.signing_key import SigningKey
from berth.cluster.actions import Delete, Get, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.object_views import ObjectView, metadata_of
from berth.cluster.resources import Object
from berth.kube.client.errors import NotFoundError

TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"

CERTIFICATE: Final = "ca.crt"
NAMESPACE: Final = "namespace"
TOKEN: Final = "token"


class SecretView(ObjectView, frozen=True):
    """A Secret, whose data are read only where they are of interest."""

    type: str = ""
    data: dict[str, str] = msgspec.field(default_factory=dict)

    @classmethod
    def decoder(cls) -> Callable[[bytes], "SecretView"]:
        """Read of Secrets of other types nothing but the metadata."""
        decode_type = _Type.decoder()
        decode_all = msgspec.json.Decoder(cls).decode

        def decode(body: bytes) -> "SecretView":
            view = decode_type(body)
            return decode_all(body) if view.type == TYPE else cls(view.metadata, view.type)

        return decode


class _Type(ObjectView, frozen=True):
    type: str = ""


class ServiceAccountTokenController:
    """Fills them. The key is that of the Secret."""

    name = "service-account-token"

    def __init__(
        self,
        secrets: Table[SecretView],
        accounts: Table[ObjectView],
        *,
        key: SigningKey,
        certificate: str,
    ) -> None:
        """*certificate* is PEM; empty: there is none to publish."""
        self._secrets = secrets
        self._accounts = accounts
        self._key = key
        self._certificate = certificate
        self._missing: set[str] = set()
        """Secrets whose account the API server did not have when it was asked."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def secret_changed(_old: SecretView | None, new: SecretView | None) -> None:
            if new is not None and new.type == TYPE:
                enqueue(new.metadata.key)

        def account_changed(old: ObjectView | None, new: ObjectView | None) -> None:
            about = metadata_of(old, new)
            if old is not None and new is not None:
                return
            for secret in self._secrets.in_namespace(about.namespace):
                if secret.type == TYPE and _annotation(secret, ACCOUNT_NAME) == about.name:
                    enqueue(secret.metadata.key)

        self._secrets.listen(secret_changed)
        self._accounts.listen(account_changed)

    def plan(self, key: str) -> Plan:
        missing = key in self._missing
        self._missing.discard(key)
        secret = self._secrets.get(key)
        if secret is None or secret.metadata.deletion_timestamp is not None:
            return NOTHING
        metadata = secret.metadata
        name, uid = _annotation(secret, ACCOUNT_NAME), _annotation(secret, ACCOUNT_UID)
        account = self._accounts.get(f"{metadata.namespace}/{name}")
        path = f"/api/v1/namespaces/{metadata.namespace}"
        if account is None and not missing:
            # It may be newer than what we know.
            return Plan([Get(f"{path}/serviceaccounts/{name}")])
        if account is None or uid not in ("", account.metadata.uid):
            return Plan([Delete(f"{path}/secrets/{metadata.name}", metadata.uid)])
        lacking = self._lacking(secret, Bound(name, account.metadata.uid))
        if not lacking:
            return NOTHING
        body: Object = {
            "metadata": {
                "uid": metadata.uid,
                "annotations": {ACCOUNT_UID: account.metadata.uid},
            },
            "data": lacking,
        }
        return Plan([Patch(f"{path}/secrets/{metadata.name}", body)])

    def _lacking(self, secret: SecretView, account: Bound) -> dict[str, str]:
        namespace, name = secret.metadata.namespace, secret.metadata.name
        wanted = {NAMESPACE: in_secret(namespace)}
        if self._certificate:
            wanted[CERTIFICATE] = in_secret(self._certificate)
        if not secret.data.get(TOKEN) or not _annotation(secret, ACCOUNT_UID):
            wanted[TOKEN] = in_secret(self._key.sign(legacy_claims(namespace, name, account)))
        return {key: value for key, value in wanted.items() if secret.data.get(key) != value}

    def finished(self, key: str, outcome: Outcome) -> None:
        if isinstance(outcome.action, Get) and isinstance(outcome.error, NotFoundError):
            self._missing.add(key)


def new_controller(context: ControllerContext) -> ServiceAccountTokenController | None:
    if context.signing_key is None:
        return None
    return ServiceAccountTokenController(
        context.table("secrets", SecretView),
        context.table("serviceaccounts", ObjectView),
        key=context.signing_key,
        certificate=context.certificate,
    )


def _annotation(secret: SecretView, key: str) -> str:
    return (secret.metadata.annotations or {}).get(key, "")
