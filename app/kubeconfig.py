"""Kubeconfigs and other secrets, written to files that only their owner can read."""

import os
from base64 import b64encode
from pathlib import Path

import yaml


def write_kubeconfig(
    path: Path, *, server: str, user: str, authority: bytes | None = None, token: str | None = None
) -> None:
    """Write a kubeconfig of *user*, for kubectl and everybody else.

    *authority*, as PEM, vouches for the server's certificate.
    """
    cluster = {"server": server}
    if authority is not None:
        cluster["certificate-authority-data"] = b64encode(authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "berth", "cluster": cluster}],
        "users": [{"name": user, "user": {} if token is None else {"token": token}}],
        "contexts": [{"name": "berth", "context": {"cluster": "berth", "user": user}}],
        "current-context": "berth",
    }
    write_secret(path, yaml.safe_dump(config, sort_keys=False))


def write_secret(path: Path, text: str) -> None:
    """Write *text* all at once: whoever waits for the file must not read half of it."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.unlink(missing_ok=True)
    written.touch(mode=0o600, exist_ok=False)  # whoever makes it first could read it
    written.write_text(text, encoding="utf-8")
    written.replace(path)
