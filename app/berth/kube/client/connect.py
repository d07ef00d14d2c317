"""Finds the API server and the credentials for it: kubeconfig, in-cluster, or a plain address."""

import os
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from berth.kube.client.api_client import ApiClient, Authorization, anonymous
from berth.kube.client.connections import Connections
from berth.kube.client.credentials import Credentials
from berth.kube.client.plain_kubeconfig import PlainAccess, plain_access, pod_access
from berth.kube.client.rate_limit import TokenBucket
from berth.kube.client.transport import Transport
from berth.runtime.addresses import THIS_MACHINE
from berth.runtime.clock import Clock, RealClock
from berth.runtime.errors import UserError
from berth.runtime.files import open_in_memory, path_of


class ConnectError(UserError):
    """There is no usable way to an API server; the message names what was tried."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where the API server is, and how it and we prove who we are."""

    url: str
    tls: ssl.SSLContext | bool = True
    authorization: Authorization = anonymous
    server_hostname: str | None = None
    proxy: str | None = None


async def connect(
    *,
    kubeconfig: str | None,
    context: str | None = None,
    master: str | None = None,
    qps: float = 50.0,
    burst: int = 100,
    user_agent: str = "berth",
) -> ApiClient:
    """Return a client for the API server that is meant; nothing is sent to it yet.

    *kubeconfig* is a file, or several joined like ``$KUBECONFIG``; *context* picks another than its
    current one; *master* overrides its server. Without a kubeconfig, requests to *master* are
    anonymous, and without either we must be running in a pod. Raises ConnectError.
    """
    clock = RealClock()
    endpoint = await find(kubeconfig=kubeconfig, context=context, master=master, clock=clock)
    return client_of(endpoint, qps=qps, burst=burst, user_agent=user_agent, clock=clock)


def client_of(
    endpoint: Endpoint, *, qps: float, burst: int, user_agent: str, clock: Clock
) -> ApiClient:
    """Return a client for the API server at *endpoint*. Needs a running event loop."""
    return ApiClient(
        transport_to(endpoint, clock=clock),
        endpoint.url,
        user_agent=user_agent,
        limiter=TokenBucket(qps=qps, burst=burst, clock=clock),
        clock=clock,
        authorization=endpoint.authorization,
    )


def transport_to(endpoint: Endpoint, *, clock: Clock) -> Transport:
    """Return what sends requests to *endpoint*, through a proxy if that needs one."""
    url, tls, server_hostname = endpoint.url, endpoint.tls, endpoint.server_hostname
    proxy = endpoint.proxy or proxy_from_environment(url)
    if proxy is None:
        return Connections(url, tls=tls, server_hostname=server_hostname, clock=clock)
    from berth.kube.client.proxied import ProxiedSession  # here: it takes 0.1 s to load

    return ProxiedSession(url, proxy=proxy, tls=tls, server_hostname=server_hostname)


async def find(
    *, kubeconfig: str | None, context: str | None, master: str | None, clock: Clock
) -> Endpoint:
    """Return the endpoint that :func:`connect`'s arguments mean."""
    if kubeconfig is not None:
        return await from_kubeconfig(kubeconfig, context=context, master=master, clock=clock)
    if master is not None:
        return Endpoint(master)
    return in_cluster(clock=clock)


async def from_kubeconfig(
    kubeconfig: str, *, context: str | None, master: str | None, clock: Clock
) -> Endpoint:
    """Read a kubeconfig. Raises ConnectError with the name of the file."""
    with _naming_kubeconfig(kubeconfig):
        exists = any(is_file(path) for path in kubeconfig.split(os.pathsep))
    if not exists:
        raise ConnectError(f"kubeconfig {kubeconfig}: no such file")
    with _naming_kubeconfig(kubeconfig), ExitStack() as files:
        access = plain_access(kubeconfig, context, files)
        if access is not None:
            return _plain_endpoint(access, master=master, clock=clock)
    # imported here: see the decision in the package's docstring
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import load_kube_config

    keep_in_memory()
    configuration = Configuration()
    with _naming_kubeconfig(kubeconfig):
        loader = await load_kube_config(
            kubeconfig, context=context, client_configuration=configuration, persist_config=False
        )
        access = PlainAccess(
            server=str(configuration.host),
            authority=configuration.ssl_ca_cert or "",
            certificate=configuration.cert_file or "",
            key=configuration.key_file or "",
            verifies=configuration.verify_ssl,
            server_name=configuration.tls_server_name,
            proxy=configuration.proxy,
        )
        credentials = Credentials(
            lambda: loader.load_and_set(configuration),
            # as the library keeps it, scheme included
            lambda: str(configuration.api_key.get("BearerToken", "")),
            clock=clock,
        )
        return _endpoint(access, credentials, master=master)


@contextmanager
def _naming_kubeconfig(kubeconfig: str) -> Iterator[None]:
    """Make a ConnectError of whatever is wrong with a file: loaders let out what they stumble over,
    also errors without words."""
    try:
        yield
    except Exception as exc:
        problem = str(exc) or type(exc).__name__
        raise ConnectError(f"kubeconfig {kubeconfig}: {problem}") from exc


def in_cluster(*, clock: Clock) -> Endpoint:
    """Use the service account of the pod that we run in. Raises ConnectError outside of a pod."""
    try:
        return _plain_endpoint(pod_access(os.environ), master=None, clock=clock)
    except ValueError as exc:
        raise ConnectError(
            f"no kubeconfig and no master was given, and this is not a pod of a cluster: {exc}"
        ) from exc


def _plain_endpoint(access: PlainAccess, *, master: str | None, clock: Clock) -> Endpoint:
    """Return what *access* says; with *master* in place of its server."""
    bearer = access.bearer()

    async def reload() -> None:
        nonlocal bearer
        bearer = access.bearer()

    return _endpoint(access, Credentials(reload, lambda: bearer, clock=clock), master=master)


def _endpoint(access: PlainAccess, credentials: Credentials, *, master: str | None) -> Endpoint:
    """Return what *access* says, its TLS files read; with *master* in place of its server."""
    url = master or access.server
    return Endpoint(
        url,
        tls=_tls_context(access) if url.startswith("https") else True,
        authorization=credentials,
        server_hostname=access.server_name,
        proxy=access.proxy,
    )


def _tls_context(access: PlainAccess) -> ssl.SSLContext:
    """Return the context with the CAs to trust and the certificate to show."""
    context = ssl.create_default_context(cafile=access.authority or None)
    if access.certificate:
        context.load_cert_chain(access.certificate, keyfile=access.key or None)
    if not access.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


_MOST_KEPT: Final = 64
"""Files; those of plugins that make a new certificate now and then, the oldest go."""
_in_memory: Final[dict[bytes, int]] = {}
"""What was asked for, and where it is: the library asks every minute, and opens it right then."""


@cache
def keep_in_memory() -> None:
    """Have kubernetes_asyncio put into memory the certificates and keys that a kubeconfig holds.

    For this process, for good. It would write them to temporary files and remove these at exit, so
    that a process that is killed leaves its client key behind. Where the system has no files in
    memory, nothing changes.
    """
    from kubernetes_asyncio.config.kube_config import FileOrData

    on_disk = FileOrData._create_temp_file_with_content

    def in_memory(self: Any, content: str | bytes) -> str:
        data = content.encode() if isinstance(content, str) else content
        descriptor = _in_memory.pop(data, None)
        if descriptor is None:
            descriptor = open_in_memory(data)
        if descriptor is None:
            return str(on_disk(self, content))
        _in_memory[data] = descriptor
        if len(_in_memory) > _MOST_KEPT:
            os.close(_in_memory.pop(next(iter(_in_memory))))
        return path_of(descriptor)

    FileOrData._create_temp_file_with_content = in_memory  # type: ignore[method-assign]  # is meant


def is_file(path: str) -> bool:
    """Say whether a file of that name exists; ``~`` is the user's home."""
    return bool(path) and Path(path).expanduser().is_file()


def proxy_from_environment(url: str) -> str | None:
    """Return the proxy that ``HTTPS_PROXY`` and the like name for *url*; never one to ourselves."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in THIS_MACHINE or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)
