"""Flags about serving that ``berth run`` cannot obey: it ends at once and says which."""

import pytest

from berth import cli


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        pytest.param(
            "--authentication-kubeconfig=/nowhere", "kubeconfig /nowhere: no such file", id="tokens"
        ),
        pytest.param(
            "--authorization-kubeconfig=/nowhere", "kubeconfig /nowhere: no such file", id="rights"
        ),
        pytest.param("--tls-min-version=1.2", "--tls-min-version 1.2: must be one of", id="TLS"),
        pytest.param("--tls-cipher-suites=RC4", "--tls-cipher-suites RC4: must be of", id="cipher"),
        pytest.param("--tls-cert-file=x", "--tls-cert-file x: ", id="certificate"),
        pytest.param("--client-ca-file=/nowhere", "--client-ca-file /nowhere: No such", id="CA"),
        pytest.param(
            "--authorization-always-allow-paths=/a*b",
            "--authorization-always-allow-paths /a*b: only trailing * allowed",
            id="public paths",
        ),
    ],
)
def test_flags_that_cannot_be_obeyed(
    flag: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = "--master=http://127.0.0.1:9"
    assert cli.main(["run", nowhere, "--leader-elect=false", flag]) == 2
    assert f"berth run: {why}" in capsys.readouterr().err


def test_a_port_without_protection_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "--debug-port=1"])
    assert "unrecognized arguments: --debug-port=1" in capsys.readouterr().err
