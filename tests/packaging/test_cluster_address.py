"""``berth cluster`` for others than this machine: address, names, credentials."""

import os
import random
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from berth import cli
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.kube.client.connect import connect
from berth.kube.client.errors import ForbiddenError
from berth.runtime.clock import RealClock


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        pytest.param(
            ["--insecure", "--bind-address=0.0.0.0"],
            "--bind-address 0.0.0.0: --insecure grants all permissions",
            id="everybody may do everything",
        ),
        pytest.param(
            ["--insecure", "--bind-address=::"], "--bind-address ::", id="the same with IPv6"
        ),
    ],
)
def test_what_would_be_open_to_all_is_refused(
    argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["cluster", *argv]) == 2
    assert why in capsys.readouterr().err


def test_an_address_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["cluster", "--bind-address=here"])
    assert "--bind-address: 'here' does not appear to be an IPv4 or IPv6" in capsys.readouterr().err


@pytest.mark.wall
async def test_its_certificate_is_good_for_the_names_that_others_use() -> None:
    cluster = EmbeddedCluster(
        clock=RealClock(), rng=random.Random(1), host="0.0.0.0", names=["cluster", "10.1.2.3"]
    )
    await cluster.start(0)
    assert cluster.url.startswith("https://127.0.0.1:")
    assert cluster.certificate is not None
    certificate = x509.load_pem_x509_certificate(cluster.certificate.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "cluster"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == [
        "127.0.0.1", "::1", "10.1.2.3",
    ]  # fmt: skip
    await cluster.stop()


@pytest.mark.wall
async def test_credentials_give_each_its_own_rights(tmp_path: Path) -> None:
    clock = RealClock()
    cluster = EmbeddedCluster(clock=clock, rng=random.Random(1))
    await cluster.start(0)
    folder = tmp_path / "new" / "credentials"
    cluster.write_credentials(folder)

    written = {
        os.fspath(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
    }
    assert written == {
        "scheduler": 0o700,
        "scheduler/kubeconfig": 0o600,
        "kubelets": 0o700,
        "kubelets/kubeconfig": 0o600,
        "monitoring": 0o700,
        "monitoring/token": 0o600,
    }
    for name, user, may_read in (
        ("scheduler", "system:kube-scheduler", "/api/v1/pods"),
        ("kubelets", "system:node:hollow", "/api/v1/nodes"),
    ):
        path = folder / name / "kubeconfig"
        (said,) = yaml.safe_load(path.read_text())["users"]
        assert said["name"] == user
        client = await connect(kubeconfig=str(path), qps=0, burst=1, user_agent="test")
        assert b"List" in await client.request("GET", may_read)
        with pytest.raises(ForbiddenError):
            await client.request("DELETE", "/api/v1/namespaces/default")
        await client.close()
    token = (folder / "monitoring" / "token").read_text()
    client = await cluster.connect("test", token=token)
    with pytest.raises(ForbiddenError):
        await client.request("GET", "/api/v1/pods")
    await client.close()
    await cluster.stop()
