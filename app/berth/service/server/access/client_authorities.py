"""The CAs of clients and of proxies: by flags, else as the cluster publishes them (spec §7.2).

An API server publishes its client CA and its request header CA in the ConfigMap
``kube-system/extension-apiserver-authentication``.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.kube.client.reviews import TIMEOUT
from berth.runtime.errors import UserError
from berth.scheduler.config.options import DelegatingAuthenticationOptions
from berth.service.server.access.client_certificates import CertificateAuthorities

log = logging.getLogger(__name__)

LOOKUP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


class AuthenticationError(UserError):
    """Authentication cannot work as configured; the message names the flag or the ConfigMap."""


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """The authenticating proxies to trust, and the headers in which they name the user."""

    authorities: CertificateAuthorities
    allowed_names: tuple[str, ...] = ()
    """Common names of proxies; none: any."""
    username_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientAuthorities:
    """The CAs to trust; None: no certificates of that kind."""

    clients: CertificateAuthorities | None = None
    proxies: RequestHeaders | None = None

    @property
    def authorities(self) -> tuple[CertificateAuthorities, ...]:
        """All that a TLS handshake has to accept."""
        proxies = None if self.proxies is None else self.proxies.authorities
        return tuple(authority for authority in (self.clients, proxies) if authority is not None)


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


async def client_authorities(
    options: DelegatingAuthenticationOptions,
    api: Api,
    *,
    known: ClientAuthorities | None = None,
) -> ClientAuthorities:
    """Return what *options* say, and of what they leave open, what the cluster says.

    When the cluster does not answer, *known* stays in force. Raises
    AuthenticationError for a file that cannot be used, and if nothing was known and
    --authentication-tolerate-lookup-failure is false, for the cluster.
    """
    clients = _clients_by_flags(options)
    proxies = _proxies_by_flags(options)
    if options.authentication_skip_lookup or (clients is not None and proxies is not None):
        return ClientAuthorities(clients, proxies)
    try:
        answer = await api.request("GET", LOOKUP, timeout=TIMEOUT)
        published = msgspec.json.decode(answer, type=_ConfigMap).data
        return ClientAuthorities(
            clients or _clients_published(published), proxies or _proxies_published(published)
        )
    except (ApiError, msgspec.MsgspecError, ValueError) as exc:
        problem = str(exc)
        if known is not None:
            log.debug("client authorities not looked up again", extra={"error": problem})
            return ClientAuthorities(clients or known.clients, proxies or known.proxies)
        if not options.authentication_tolerate_lookup_failure:
            raise AuthenticationError(f"{LOOKUP}: {problem}") from exc
        log.warning("continuing without the cluster's client authorities", extra={"error": problem})
        return ClientAuthorities(clients, proxies)


def _clients_by_flags(options: DelegatingAuthenticationOptions) -> CertificateAuthorities | None:
    return _from_file("--client-ca-file", options.client_ca_file)


def _proxies_by_flags(options: DelegatingAuthenticationOptions) -> RequestHeaders | None:
    authorities = _from_file("--requestheader-client-ca-file", options.requestheader_client_ca_file)
    if authorities is None:
        return None
    return RequestHeaders(
        authorities,
        allowed_names=options.requestheader_allowed_names,
        username_headers=options.requestheader_username_headers,
        group_headers=options.requestheader_group_headers,
        extra_prefixes=options.requestheader_extra_headers_prefix,
        uid_headers=options.requestheader_uid_headers,
    )


def _from_file(flag: str, path: str) -> CertificateAuthorities | None:
    if not path:
        return None
    try:
        return CertificateAuthorities(Path(path).read_text(encoding="utf-8"))
    except OSError as exc:
        raise AuthenticationError(f"{flag} {path}: {exc.strerror}") from exc
    except ValueError as exc:
        raise AuthenticationError(f"{flag} {path}: {exc}") from exc


def _clients_published(data: Mapping[str, str]) -> CertificateAuthorities | None:
    pem = data.get("client-ca-file", "")
    return CertificateAuthorities(pem) if pem else None


def _proxies_published(data: Mapping[str, str]) -> RequestHeaders | None:
    pem = data.get("requestheader-client-ca-file", "")
    if not pem:
        return None

    def names(key: str) -> tuple[str, ...]:
        return msgspec.json.decode(data.get(key) or "[]", type=tuple[str, ...])

    return RequestHeaders(
        CertificateAuthorities(pem),
        allowed_names=names("requestheader-allowed-names"),
        username_headers=names("requestheader-username-headers"),
        group_headers=names("requestheader-group-headers"),
        extra_prefixes=names("requestheader-extra-headers-prefix"),
        uid_headers=names("requestheader-uid-headers"),
    )
