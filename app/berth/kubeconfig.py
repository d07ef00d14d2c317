"""Kubeconfigs, written to files that only their owner can read."""

from base64 import b64encode
from pathlib import Path

import yaml

from berth.files import write_file


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
    write_file(path, yaml.safe_dump(config, sort_keys=False))
