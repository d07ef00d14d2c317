"""Kubeconfigs: written to files that only their owner can read, or merged into those there are.

A context of ours has an extension ``berth``, which says where the scheduler of that cluster answers
and which process runs it. kubectl keeps it and does nothing with it.
"""

import os
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import yaml

from berth.kube import documents
from berth.runtime.errors import UserError
from berth.runtime.files import write_file

NAME: Final = "berth"
"""Of the cluster, the context, and the extension."""

LISTS: Final = ("clusters", "users", "contexts")


class KubeconfigError(UserError):
    """A kubeconfig cannot be read or written; the message names it."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a cluster, and as whom."""

    server: str
    """A URL."""
    user: str
    authority: bytes | None = None
    """What vouches for the server's certificate, as PEM."""
    token: str | None = None
    scheduler: str = ""
    """The URL of its scheduler, for ``berth explain``; empty if it has none, or not here."""
    process: int = 0
    """The id of the process that runs the cluster; 0: it does not run in one of this machine."""

    def entries(self, name: str, *, user: str) -> dict[str, dict[str, Any]]:
        """Return one entry for each of LISTS: cluster and context *name*, and *user*."""
        cluster = {"server": self.server}
        if self.authority is not None:
            cluster["certificate-authority-data"] = b64encode(self.authority).decode()
        context: dict[str, Any] = {"cluster": name, "user": user}
        about = {"process": self.process, "scheduler": self.scheduler}
        if any(about.values()):
            known = {key: value for key, value in about.items() if value}
            context["extensions"] = [{"name": NAME, "extension": known}]
        return {
            "clusters": {"name": name, "cluster": cluster},
            "users": {"name": user, "user": {} if self.token is None else {"token": self.token}},
            "contexts": {"name": name, "context": context},
        }


def write_kubeconfig(path: Path, access: Access) -> None:
    """Write a kubeconfig with one context. Raises OSError."""
    entries = access.entries(NAME, user=access.user)
    _write(
        path,
        {
            "apiVersion": "v1",
            "kind": "Config",
            **{section: [entry] for section, entry in entries.items()},
            "current-context": NAME,
        },
    )


@contextmanager
def written(path: Path, access: Access) -> Iterator[None]:
    """Have a kubeconfig with one context for the block. Raises OSError.

    It is removed afterwards, unless it has another content by then.
    """
    write_kubeconfig(path, access)
    content = path.read_bytes()
    try:
        yield
    finally:
        with suppress(OSError):
            if path.read_bytes() == content:
                path.unlink()


def path_beside(path: Path) -> Path:
    """Return *path*, or one like it while another process that runs has its cluster there."""
    for number in count(1):
        beside = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            config = _read(beside)
        except KubeconfigError:  # not one of ours: as if there were no other
            return beside
        if not _is_used(named(config, "contexts", str(config.get("current-context")))):
            return beside
    raise AssertionError


def scheduler_in(kubeconfig: str, *, context: str | None = None) -> str:
    """Return the URL of the scheduler of *context*, or of the current one; empty if it is not said.

    *kubeconfig* is a file, or several joined like ``$KUBECONFIG``.
    """
    configs = []
    for part in kubeconfig.split(os.pathsep):
        with suppress(KubeconfigError):
            configs.append(_read(Path(part).expanduser()) if part else {})
    current = next(filter(None, (config.get("current-context") for config in configs)), "")
    for config in configs:
        entry = named(config, "contexts", context or str(current))
        if entry is not None:
            return str(_extension(entry).get("scheduler") or "")
    return ""


def usual_path() -> Path:
    """Return the file that kubectl writes to: of ``$KUBECONFIG``, or in the user's home."""
    paths = [Path(path) for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    there = [path for path in paths if path.exists()]
    return (there or paths or [Path.home() / ".kube" / "config"])[0]


@contextmanager
def merged(path: Path, access: Access) -> Iterator[str]:
    """Add a cluster to the kubeconfig *path* for the block, and make it the current one.

    Yields the name of its context: ``berth``, or ``berth-2`` and so on beside others. What is in
    the file stays; afterwards the context that was current before is current again, unless
    somebody has chosen another meanwhile. Raises KubeconfigError.
    """
    with _changed(path) as config:
        name = _free_name(config)
        before = config.get("current-context")
        for section, entry in access.entries(name, user=name).items():
            _remove(config, section, name)
            config[section] = [*(config.get(section) or []), entry]
        config["current-context"] = name
    try:
        yield name
    finally:
        with _changed(path) as config:
            for section in LISTS:
                _remove(config, section, name)
            if config.get("current-context") == name:
                known = named(config, "contexts", str(before)) is not None
                config["current-context"] = before if known else ""


def _free_name(config: Mapping[str, Any]) -> str:
    """Return a name that nothing has, or a cluster of ours that has ended without a word."""
    for number in count(1):
        name = NAME if number == 1 else f"{NAME}-{number}"
        context = named(config, "contexts", name)
        is_taken = any(named(config, section, name) is not None for section in LISTS)
        if not is_taken or (_extension(context) and not _is_used(context)):
            return name
    raise AssertionError


def _is_used(context: Mapping[str, Any] | None) -> bool:
    """Whether another process that runs has put *context* there."""
    process = _extension(context).get("process")
    if not isinstance(process, int) or process <= 0 or process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _extension(entry: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return what we wrote into the context of an entry; nothing if it is not ours."""
    context = (entry or {}).get("context")
    extension = named(context if isinstance(context, dict) else {}, "extensions", NAME)
    about = (extension or {}).get("extension")
    return about if isinstance(about, dict) else {}


def named(config: Mapping[str, Any], where: str, name: str) -> dict[str, Any] | None:
    """Return the entry of this name of a list in a kubeconfig; None if there is none."""
    entries = config.get(where)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry
    return None


def _remove(config: dict[str, Any], where: str, name: str) -> None:
    entry = named(config, where, name)
    if entry is not None:
        config[where].remove(entry)


def _read(path: Path) -> dict[str, Any]:
    """Return what is in a kubeconfig; nothing if it is not there."""
    try:
        config = documents.load(path.read_bytes()) or {}
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise KubeconfigError(f"{path}: {exc.strerror}") from exc
    except yaml.YAMLError as exc:
        raise KubeconfigError(f"{path}: not YAML: {' '.join(str(exc).split())}") from exc
    if not isinstance(config, dict) or not all(
        isinstance(config.get(section) or [], list) for section in LISTS
    ):
        raise KubeconfigError(f"{path}: it is not a kubeconfig")
    return config


def _write(path: Path, config: Mapping[str, Any]) -> None:
    write_file(path, yaml.safe_dump(dict(config), sort_keys=False))


@contextmanager
def _changed(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what is in *path*, and write back what the block has made of it.

    The lock is the one of kubectl: a file beside it.
    """
    path = path.expanduser().resolve()
    lock = path.with_name(f"{path.name}.lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError as exc:
        raise KubeconfigError(
            f"{path}: another program changes it; if none does, delete {lock}"
        ) from exc
    except OSError as exc:
        raise KubeconfigError(f"{exc.filename}: {exc.strerror}") from exc
    try:
        config = {"apiVersion": "v1", "kind": "Config", **_read(path)}
        yield config
        try:
            _write(path, config)
        except OSError as exc:
            raise KubeconfigError(f"{path}: {exc.strerror}") from exc
    finally:
        lock.unlink(missing_ok=True)
