"""The gate: who makes a request, and whether he may. What passes has a user."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from cryptography import x509
from cryptography.x509.oid import NameOID
from starlette.types import Scope

from berth.cluster import errors
from berth.cluster.access.attributes import Attributes, attributes_of
from berth.cluster.access.authentication import TokenAuthenticator
from berth.cluster.access.flows import is_exempt
from berth.cluster.access.rbac import Authorizer
from berth.cluster.access.service_account_tokens import InvalidTokenError
from berth.cluster.access.users import (
    ADMIN,
    ANONYMOUS,
    AUTHENTICATED,
    SERVICE_ACCOUNTS,
    User,
    split_service_account,
)
from berth.cluster.errors import StatusError
from berth.cluster.options import read_query
from berth.runtime.http_server import PEER_CERTIFICATE

USER: Final = "user"
"""Where the scope of a request has its :class:`User`."""

BEARER: Final = "bearer "
IMPERSONATE: Final = b"impersonate-"
EXTRA: Final = "extra-"
AUTHENTICATION: Final = "authentication.k8s.io"

CONNECTED: Final = frozenset({"pods/attach", "pods/exec", "pods/portforward"})
"""What needs the right to ``create`` however it is asked for."""


class Gate:
    """Authenticates and authorizes. With *is_open* everybody is :data:`ADMIN`, unasked."""

    def __init__(
        self, authenticator: TokenAuthenticator, authorizer: Authorizer, *, is_open: bool
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._is_open = is_open

    def admit(self, scope: Scope) -> None:
        """Let the request pass with its user noted in *scope*, or raise StatusError: 401, 403."""
        authorization = ""
        impersonation: list[tuple[str, str]] = []
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value.decode("latin-1")
            elif name.startswith(IMPERSONATE):
                asked = name.decode("latin-1").removeprefix("impersonate-")
                impersonation.append((asked, value.decode("utf-8", "replace")))
        certificate = scope["state"].get(PEER_CERTIFICATE) if "state" in scope else None
        user = ADMIN if self._is_open else self.authenticate(authorization, certificate)
        if impersonation:
            user = self._impersonated(user, impersonation)
        if not user.is_master or self._authorizer.observer is not None:
            query = read_query(scope["query_string"])
            wanted = attributes_of(scope["method"], scope["path"], query)
            self.authorize(user, wanted)
            if wanted.verb == "get" and wanted.full_resource in CONNECTED:
                # A WebSocket opens with a GET, and is as good as what SPDY POSTs.
                self.authorize(user, wanted._replace(verb="create"))
        scope[USER] = user

    def goes_first(self, scope: Scope) -> bool:
        """Tell whether a request is served also when there are too many connections."""
        if self._is_open:
            return False
        authorization = next((v for n, v in scope["headers"] if n == b"authorization"), b"")
        try:
            user = self.authenticate(
                authorization.decode("latin-1"), scope["state"].get(PEER_CERTIFICATE)
            )
        except StatusError:
            return False
        return is_exempt(user)

    def authenticate(self, authorization: str, certificate: bytes | None = None) -> User:
        """Return whose client *certificate* (DER) or else Authorization header that is.

        401 for a token that nobody has.
        """
        if certificate is not None and (user := user_of(certificate)) is not None:
            return user
        if authorization[: len(BEARER)].lower() != BEARER:
            return ANONYMOUS
        try:
            return self._authenticator.authenticate(authorization[len(BEARER) :].strip()).user
        except InvalidTokenError as exc:
            raise errors.unauthorized() from exc

    def authorize(self, user: User, wanted: Attributes) -> None:
        """Raise a 403 unless *user* may do what is *wanted*."""
        if self._is_open:
            return
        if not self._authorizer.authorize(user, wanted).allowed:
            raise refusal(user, wanted)

    def _impersonated(self, user: User, headers: Sequence[tuple[str, str]]) -> User:
        """Return whom *user* wants to be, if he may be each part of that: user, groups, extra.

        400 where no user is named, which is an error of the client. (The API server says 500.)
        """
        name = uid = ""
        groups: list[str] = []
        extra: dict[str, tuple[str, ...]] = {}
        for header, value in headers:
            if header == "user":
                name = value
            elif header == "uid":
                uid = value
            elif header == "group":
                groups.append(value)
            elif header.startswith(EXTRA):
                key = unquote(header.removeprefix(EXTRA))
                extra[key] = (*extra.get(key, ()), value)
        if not name:
            asked = ", ".join(sorted({f"Impersonate-{header.title()}" for header, _ in headers}))
            raise errors.bad_request(f"requested {asked} without Impersonate-User")
        account = split_service_account(name)
        wanted = [
            Attributes("impersonate", resource="users", name=name)
            if account is None
            else Attributes(
                "impersonate", resource="serviceaccounts", namespace=account[0], name=account[1]
            )
        ]
        wanted += [Attributes("impersonate", resource="groups", name=group) for group in groups]
        wanted += [
            Attributes("impersonate", AUTHENTICATION, "userextras", key, name=value)
            for key, values in extra.items()
            for value in values
        ]
        if uid:
            wanted.append(Attributes("impersonate", AUTHENTICATION, "uids", name=uid))
        for each in wanted:
            self.authorize(user, each)
        if account is not None and not groups:
            groups = [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account[0]}"]
        if name == ANONYMOUS.name:
            groups = groups or [*ANONYMOUS.groups]
        elif AUTHENTICATED not in groups:
            groups.append(AUTHENTICATED)
        return User(name, tuple(groups), uid, extra)


def refusal(user: User, wanted: Attributes) -> errors.StatusError:
    """Return the 403 that the API server has for it."""
    if not wanted.resource:
        why = f'User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
    else:
        where = f'in the namespace "{wanted.namespace}"'
        why = (
            f'User "{user.name}" cannot {wanted.verb} resource "{wanted.full_resource}" '
            f'in API group "{wanted.group}" '
            f"{where if wanted.namespace else 'at the cluster scope'}"
        )
    return errors.access_denied(wanted.group, wanted.resource, wanted.name, why)


# Users of client certificates: the common name, with the organizations as groups.


@lru_cache(maxsize=256)  # a connection has one for all of its requests
def user_of(certificate: bytes) -> User | None:
    """Return the user of a verified certificate, as DER; None if it names nobody.

    Who issued it, and whether it is for clients, was checked in the TLS handshake.
    """
    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if not names or not names[0]:
        return None
    return User(names[0], tuple(dict.fromkeys((*groups, AUTHENTICATED))))
