"""What the profile ``real`` gives kube-apiserver, which is not here, and its clients."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from berth.cluster.access.tokens import read_token_file

REPOSITORY = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (REPOSITORY / "docker-compose.yml").read_bytes()
)["services"]
FOLDER = "/var/lib/berth/credentials"


def run(folder: Path) -> dict[str, bytes]:
    """Run the script as its container does; return what is in *folder* then."""
    service = SERVICES["real-credentials"]
    mounted = {target: source for source, target, *_ in map(split, service["volumes"])}
    _python, script = service["entrypoint"]
    target, host = service["command"]
    assert target == FOLDER
    command = [sys.executable, mounted[script], os.fspath(folder), host]
    environment = {**os.environ, "PYTHONPATH": os.fspath(REPOSITORY)}
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    return {os.fspath(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def split(volume: str) -> list[str]:
    return volume.split(":")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("credentials")
    run(folder)
    return folder


def test_every_file_that_a_command_names_is_made(made: Path) -> None:
    for name, service in SERVICES.items():
        if not name.startswith("real-") or name == "real-credentials":
            continue
        for word in service["command"]:
            _, is_file, file = word.partition(f"={FOLDER}/")
            if is_file:
                assert (made / file).exists(), word


def test_only_their_owner_can_read_them(made: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.rglob("*") if path.is_file()} == {
        0o600
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()} == {0o700}


def test_users(made: Path) -> None:
    users = {
        user.name: set(user.groups)
        for user in read_token_file(made / "apiserver" / "tokens.csv").values()
    }
    everybody = {"system:authenticated"}
    assert users == {
        "admin": {"system:masters"} | everybody,
        "system:kube-scheduler": everybody,
        "hollow-kubelets": {"system:masters"} | everybody,
        "monitoring": {"system:monitoring"} | everybody,
    }


@pytest.mark.parametrize(
    ("name", "server"),
    [("scheduler", "real-apiserver:6443"), ("admin", "127.0.0.1:6444")],
)
def test_kubeconfigs_lead_to_a_server_that_its_certificate_names(
    made: Path, name: str, server: str
) -> None:
    config = yaml.safe_load((made / name / "kubeconfig").read_text())
    assert config["clusters"][0]["cluster"]["server"] == f"https://{server}"
    assert config["users"][0]["user"]["token"] in (made / "apiserver" / "tokens.csv").read_text()
    certificate = x509.load_pem_x509_certificate((made / "apiserver" / "api.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    hosts = {*names.get_values_for_type(x509.DNSName)}
    hosts |= {str(ip) for ip in names.get_values_for_type(x509.IPAddress)}
    assert server.partition(":")[0] in hosts


@pytest.mark.parametrize("pair", ["api", "service-accounts"])
def test_keys_belong_to_their_certificates(made: Path, pair: str) -> None:
    key = load_pem_private_key((made / "apiserver" / f"{pair}.key").read_bytes(), password=None)
    certificate = x509.load_pem_x509_certificate((made / "apiserver" / f"{pair}.crt").read_bytes())
    assert key.public_key() == certificate.public_key()


def test_what_is_there_is_kept(made: Path) -> None:
    before = {os.fspath(p): p.read_bytes() for p in made.rglob("*") if p.is_file()}
    assert len(before) == 9
    assert run(made) == before
