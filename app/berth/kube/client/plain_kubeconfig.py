"""Kubeconfigs that say all there is to know themselves, and the service account of a pod.

Decision (2026-11): these are read here, for kubernetes-asyncio takes 0.4 s of CPU to import, and
nearly every process reads one of them at its start. Plugins, other ways to log in, several files,
and files that are wrong are left to the library.
"""

import os
from base64 import standard_b64decode
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml

from berth.kube import documents
from berth.kube.kubeconfig import named
from berth.runtime.errors import UNREADABLE
from berth.runtime.files import file_in_memory

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

T = TypeVar("T")


class _Cluster(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, frozen=True):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: Any = None


class _User(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, frozen=True):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""


class _Context(msgspec.Struct, frozen=True):
    cluster: str
    user: str


class PlainAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach an API server. Files are named by absolute paths; an empty one is not given."""

    server: str
    authority: str = ""
    certificate: str = ""
    key: str = ""
    verifies: bool = True
    server_name: str | None = None
    proxy: str | None = None
    token: str = ""
    token_file: str = ""
    """Where the token is, which changes, if it is not *token*."""

    def bearer(self) -> str:
        """Return the Authorization header's value, by what the file holds now; may be empty."""
        if self.token or not self.token_file:
            return f"Bearer {self.token}" if self.token else ""
        content = Path(self.token_file).read_text(encoding="utf-8")
        if not content:
            raise ValueError(f"{self.token_file} is empty")
        return f"Bearer {content}"


def plain_access(path: str, context: str | None, files: ExitStack) -> PlainAccess | None:
    """Read the kubeconfig at *path*; None when it has to be read by kubernetes-asyncio.

    The certificates and keys that are written in it are files until *files* is closed.
    """
    where = Path(path).expanduser()
    try:
        config = documents.load(where.read_bytes())
        chosen = _content(config, "contexts", context or config["current-context"], _Context)
        cluster = _content(config, "clusters", chosen.cluster, _Cluster)
        user = _content(config, "users", chosen.user, _User)

        def kept(name: str, data: str) -> str:
            if not cluster.server.startswith("https"):
                return ""
            if data:
                return files.enter_context(file_in_memory(standard_b64decode(data)))
            return _beside(where, name)

        access = PlainAccess(
            server=cluster.server.rstrip("/"),
            authority=kept(cluster.certificate_authority, cluster.certificate_authority_data),
            certificate=kept(user.client_certificate, user.client_certificate_data),
            key=kept(user.client_key, user.client_key_data),
            verifies=not cluster.insecure_skip_tls_verify,
            server_name=cluster.tls_server_name,
            proxy=cluster.proxy_url,
            token=user.token,
            token_file=_beside(where, user.token_file),
        )
        access.bearer()
    except (
        *UNREADABLE, AttributeError, LookupError, TypeError, ValueError, OSError, yaml.YAMLError,
    ):  # fmt: skip
        return None  # the library says what is wrong
    return access


def pod_access(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> PlainAccess:
    """Return the access of a pod's service account. Raises ValueError outside of a pod."""
    names = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    host, port = (environment.get(name, "") for name in names)
    if not (host and port):
        raise ValueError(f"{names[0]} and {names[1]} are not set")
    access = PlainAccess(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        authority=str(folder / "ca.crt"),
        token_file=str(folder / "token"),
    )
    try:
        access.bearer()
        if not Path(access.authority).stat().st_size:
            raise ValueError(f"{access.authority} is empty")
    except OSError as exc:
        raise ValueError(f"{exc.filename}: {exc.strerror}") from exc
    return access


def _content(config: Any, kind: str, name: str, type_: type[T]) -> T:
    """Return what the entry *name* of a list has. Raises LookupError and ValidationError."""
    entry = named(config, kind, name) or {}
    return msgspec.convert(entry[kind.removesuffix("s")], type_)


def _beside(kubeconfig: Path, name: str) -> str:
    """Return the path of the file that *kubeconfig* names; it is relative to that one's folder."""
    if not name:
        return ""
    path = os.path.normpath(kubeconfig.absolute().parent / name)
    if not Path(path).is_file():
        raise FileNotFoundError(path)
    return path
