"""``berth extender``: which flags go together, and what is said when they do not."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from berth import cli
from berth.runtime.certificates import self_signed

NOW = datetime.now(UTC)
ANYWHERE = "--bind-address=0.0.0.0"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        pytest.param(
            [ANYWHERE],
            "--bind-address 0.0.0.0 exposes the extender port: pass --client-ca-file or"
            " --authentication-token-webhook, or --allow-unauthenticated to accept any client",
            id="open to everybody",
        ),
        pytest.param(
            ["--tls-cert-file=x"],
            "--tls-cert-file and --tls-private-key-file need each other",
            id="no key",
        ),
        pytest.param(
            ["--bind-address=here"],
            "--bind-address: 'here' does not appear to be an IPv4 or IPv6 address",
            id="no address",
        ),
        pytest.param(
            ["--master=http://127.0.0.1:1", "--port=0", "--client-ca-file=/none"],
            "--client-ca-file /none: No such file or directory",
            id="no such CA",
        ),
        pytest.param(
            ["--config=/none"], "/none: No such file or directory", id="no such configuration"
        ),
    ],
)
def test_what_does_not_fit_together(
    capsys: pytest.CaptureFixture[str], flags: list[str], why: str
) -> None:
    assert cli.main(["extender", *flags]) == 2
    assert capsys.readouterr().err == f"berth extender: {why}\n"


def test_a_key_of_another_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (self_signed(["h"], now=NOW, name=name) for name in ("one", "two"))
    (tmp_path / "one.pem").write_bytes(one.certificate)
    (tmp_path / "two.key").write_bytes(two.key)
    flags = [
        "--master=http://127.0.0.1:1",
        "--port=0",
        f"--tls-cert-file={tmp_path / 'one.pem'}",
        f"--tls-private-key-file={tmp_path / 'two.key'}",
    ]

    assert cli.main(["extender", *flags]) == 2
    assert "KEY_VALUES_MISMATCH" in capsys.readouterr().err


def test_a_flag_is_named_as_berth_run_spells_it(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--leader-elect=false", "--secure-port=0", "--extender-port=0"]
    assert (
        cli.main(["run", "--master=http://127.0.0.1:9", *flags, "--extender-client-ca-file=/none"])
        == 2
    )
    want = "berth run: --extender-client-ca-file /none: No such file or directory\n"
    assert capsys.readouterr().err.endswith(want)
