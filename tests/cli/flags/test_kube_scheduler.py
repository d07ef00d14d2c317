"""kube-scheduler's flags: spelling, values, and what they override."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from berth.cli.flags.kube_scheduler import apply_flags, make_parser, parse
from berth.runtime.duration import Duration
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import default_configuration
from berth.scheduler.config.options import Options
from berth.scheduler.config.types import (
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
)
from berth.service.configuration import ConfigurationSource
from berth.service.plugin_sources import KnownPlugins

FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 3
leaderElection: {leaseDuration: 20s, resourceName: mine}
"""


def parsed(*argv: str) -> Options:
    return parse(make_parser("berth run"), argv)


def given(**values: Any) -> Options:
    return Options.of(values)


@pytest.mark.parametrize(
    ("argv", "want"),
    [
        pytest.param([], given(), id="nothing"),
        pytest.param(["--config", "x.yaml"], given(config="x.yaml"), id="a value after a blank"),
        pytest.param(["--config=x=y.yaml"], given(config="x=y.yaml"), id="a value after ="),
        pytest.param(["--leader-elect"], given(leader_elect=True), id="a bare boolean"),
        pytest.param(["--leader-elect=false"], given(leader_elect=False), id="a boolean"),
        pytest.param(["--leader_elect=F"], given(leader_elect=False), id="underscores"),
        pytest.param(
            ["--leader-elect", "--config", "x"],
            given(leader_elect=True, config="x"),
            id="a bare boolean before another flag",
        ),
        pytest.param(
            ["--leader-elect-lease-duration=1m"],
            given(leader_elect_lease_duration=Duration.of(60)),
            id="a duration",
        ),
        pytest.param(["--kube-api-qps=1.5"], given(kube_api_qps=1.5), id="a float"),
        pytest.param(["--secure-port", "0"], given(secure_port=0), id="an integer"),
        pytest.param(["-v", "4"], given(v=4), id="a short flag"),
        pytest.param(["-v=4"], given(v=4), id="a short flag after ="),
        pytest.param(["--v=4"], given(v=4), id="the same in long"),
        pytest.param(["--secure-port=1", "--secure-port=2"], given(secure_port=2), id="the last"),
        pytest.param(
            ["--tls-cipher-suites=A,B", "--tls-cipher-suites=C"],
            given(tls_cipher_suites=("A", "B", "C")),
            id="a list in parts",
        ),
        pytest.param(
            ["--authorization-always-allow-paths=/x"],
            given(authorization_always_allow_paths=("/x",)),
            id="a list replaces its default",
        ),
        pytest.param(
            ["--authorization-always-allow-paths="],
            given(authorization_always_allow_paths=()),
            id="an empty list",
        ),
        pytest.param(
            ["--tls-sni-cert-key=a.crt,a.key:x", "--tls-sni-cert-key=b.crt,b.key"],
            given(tls_sni_cert_key=("a.crt,a.key:x", "b.crt,b.key")),
            id="commas inside",
        ),
        pytest.param(
            ["--feature-gates=A=true,kube:B=false", "--feature-gates=A=false"],
            given(feature_gates={"A": False, "B": False}),
            id="feature gates",
        ),
        pytest.param(["--version"], given(version="true"), id="the version"),
        pytest.param(["--version=raw"], given(version="raw"), id="all of the version"),
    ],
)
def test_parsing(argv: list[str], want: Options) -> None:
    assert parsed(*argv) == want


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(["extra"], "unrecognized arguments: extra", id="a word"),
        pytest.param(
            ["--leader-elect", "false"],
            "unrecognized arguments: false",
            id="a boolean's value is never the next word",
        ),
        pytest.param(["--port=1"], "unrecognized arguments: --port=1", id="a flag of old"),
        pytest.param(["--conf=x"], "unrecognized arguments: --conf=x", id="no abbreviations"),
        pytest.param(["--config"], "argument --config: expected one argument", id="no value"),
        pytest.param(
            ["--leader-elect=maybe"],
            "argument --leader-elect: invalid boolean value: 'maybe'",
            id="no boolean",
        ),
        pytest.param(
            ["--log-flush-frequency=5"],
            'argument --log-flush-frequency: time: missing unit in duration "5"',
            id="no duration",
        ),
        pytest.param(
            ["--secure-port=https"],
            "argument --secure-port: invalid int value: 'https'",
            id="no number",
        ),
        pytest.param(
            ["--secure-port=65536"],
            "--secure-port 65536 must be between 0 and 65535, inclusive",
            id="no port",
        ),
        pytest.param(
            ["--vmodule=queue"],
            "--vmodule: syntax error: expect comma-separated list of filename=N, got 'queue'",
            id="no verbosity of a module",
        ),
        pytest.param(
            ["--emulated-version=kube=1.35"],
            "--emulated-version '1.35': berth can be like 1.36 or 1.37",
            id="another release",
        ),
        pytest.param(
            ["--min-compatibility-version=one"],
            "--min-compatibility-version: 'one' must be like 1.37 or kube=1.37",
            id="no release",
        ),
        pytest.param(
            ["--show-hidden-metrics-for-version=1.30"],
            "--show-hidden-metrics-for-version '1.30' must be omitted or 1.36: only the previous"
            " minor version is allowed",
            id="metrics of long ago",
        ),
        pytest.param(
            ["--feature-gates=A"],
            "argument --feature-gates: missing bool value for A",
            id="a gate without a value",
        ),
        pytest.param(
            ["--logging-format=xml"],
            "argument --logging-format: invalid choice: 'xml' (choose from 'text', 'json')",
            id="no choice",
        ),
    ],
)
def test_mistakes(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(*argv)
    assert (ended.value.code, capsys.readouterr().err) == (
        2,
        f"usage: berth run [flags]\nberth run: error: {message}\n",
    )


def test_help_has_every_flag_with_its_default() -> None:
    text = " ".join(make_parser("berth run").format_help().split())
    assert "--leader-elect BOOL Schedule only while holding the Lease. Default: true" in text
    assert "--kube-api-qps FLOAT Deprecated: API requests per second. Default: 50.0" in text
    assert "--requestheader-uid-headers VALUE,..." in text


DEFAULT = default_configuration(KnownPlugins().args_models)
ALL = given(
    kubeconfig="kc",
    profiling=False,
    contention_profiling=False,
    kube_api_content_type="application/json",
    kube_api_qps=1.0,
    kube_api_burst=2,
    leader_elect=False,
    leader_elect_lease_duration=Duration.of(60),
    leader_elect_renew_deadline=Duration.of(50),
    leader_elect_retry_period=Duration.of(40),
    leader_elect_resource_lock="leases",
    leader_elect_resource_name="n",
    leader_elect_resource_namespace="ns",
)
ELECTION = LeaderElection(
    leader_elect=False,
    lease_duration=Duration.of(60),
    renew_deadline=Duration.of(50),
    retry_period=Duration.of(40),
    resource_name="n",
    resource_namespace="ns",
)
WITHOUT_FILE = {
    "enable_profiling": False,
    "enable_contention_profiling": False,
    "client_connection": ClientConnection(
        kubeconfig="kc", content_type="application/json", qps=1.0, burst=2
    ),
}


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        pytest.param(given(), {}, id="no flags"),
        pytest.param(
            replace(ALL, explicit=frozenset()), {}, id="values that were not given explicitly"
        ),
        pytest.param(ALL, {"leader_election": ELECTION, **WITHOUT_FILE}, id="all, without a file"),
        pytest.param(
            replace(ALL, config="x.yaml"),
            {"leader_election": ELECTION},
            id="with a file the deprecated ones do not count",
        ),
        pytest.param(
            given(profiling=False),
            {"enable_profiling": False},
            id="profiling alone leaves contention profiling on",
        ),
    ],
)
def test_what_flags_override(options: Options, changed: dict[str, Any]) -> None:
    assert apply_flags(DEFAULT, options) == DEFAULT.model_copy(update=changed)


def effective(*argv: str) -> KubeSchedulerConfiguration:
    options = parsed(*argv)
    source = ConfigurationSource(
        find_plugins=KnownPlugins,
        file=options.config,
        adjust=partial(apply_flags, options=options),
    )
    config, _ = source.load()
    return config


def test_the_file_then_the_flags(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(FILE)
    config = effective(f"--config={file}", "--leader-elect-resource-name=ours", "--kube-api-qps=9")
    assert config == DEFAULT.model_copy(
        update={
            "parallelism": 3,
            "leader_election": LeaderElection(lease_duration=Duration.of(20), resource_name="ours"),
        }
    )


def test_flags_can_mend_a_file(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(FILE.replace("20s", "5s"))
    effective(f"--config={file}", "--leader-elect-lease-duration=11s")
    with pytest.raises(ConfigError, match=r"x\.yaml: leaderElection\.leaseDuration"):
        effective(f"--config={file}")


def test_flags_are_validated() -> None:
    with pytest.raises(ConfigError) as error:
        effective("--leader-elect-resource-name=")
    assert str(error.value) == "command line: leaderElection.resourceName: Required value"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    with pytest.raises(ConfigError) as error:
        effective("--config", str(file))
    assert str(error.value) == f"{file}: No such file or directory"
