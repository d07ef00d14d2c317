"""Makes what kube-apiserver and its clients need to trust each other: certificates and tokens.

For the profile `real` of docker-compose.yml, once: what is there already is kept. Runs with berth's
image: ``python credentials.py FOLDER HOST``, HOST being the name of the API server.
"""

import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from berth.kube.kubeconfig import Access, write_kubeconfig
from berth.runtime.certificates import self_signed
from berth.runtime.files import write_file

USERS: Final = {
    "admin": ("admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    # A kubelet for all nodes: more than RBAC and the Node authorizer give to one.
    "kubelets": ("hollow-kubelets", "system:masters"),
    "monitoring": ("monitoring", "system:monitoring"),
}
"""Folder to its user and group."""

API_SERVER: Final = "apiserver"
"""The folder of what the API server reads."""

PORT: Final = 6443
PORT_ON_THIS_MACHINE: Final = 6444
"""Where docker-compose.yml publishes it."""


def make(folder: Path, host: str, *, now: datetime) -> None:
    """Write all files of *folder*, the certificate for *host* and loopback.

    Who reads them has a folder of his own there: each user, and the API server.
    """
    served = folder / API_SERVER
    for name in (*USERS, API_SERVER):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    api = self_signed([host, "localhost", "127.0.0.1"], now=now, name=host)
    write_file(served / "api.key", api.key)
    write_file(served / "api.crt", api.certificate)
    accounts = self_signed([host], now=now, name="service-accounts")
    write_file(served / "service-accounts.key", accounts.key)
    write_file(served / "service-accounts.crt", accounts.certificate)
    tokens = {name: secrets.token_urlsafe(32) for name in USERS}
    for name, (user, _group) in USERS.items():
        server = f"127.0.0.1:{PORT_ON_THIS_MACHINE}" if name == "admin" else f"{host}:{PORT}"
        write_kubeconfig(
            folder / name / "kubeconfig",
            Access(f"https://{server}", user, api.certificate, tokens[name]),
        )
    rows = [f'{tokens[name]},{user},{user},"{group}"' for name, (user, group) in USERS.items()]
    # The last one: it says that all are there.
    write_file(served / "tokens.csv", "\n".join(rows) + "\n")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if not (target / API_SERVER / "tokens.csv").exists():
        make(target, sys.argv[2], now=datetime.now(UTC))
