"""``berth run``: what it does before it talks to any API server."""

from pathlib import Path

import pytest

from berth import cli
from berth.scheduler.config.load import load
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE

FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 42
profiles: [{plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}}]
"""


def test_the_effective_configuration_is_written_and_can_be_loaded(tmp_path: Path) -> None:
    given, written = tmp_path / "given.yaml", tmp_path / "written.yaml"
    given.write_text(FILE)
    argv = ["run", "--config", str(given), "--leader-elect=false", "--write-config-to"]

    assert cli.main([*argv, str(written)]) == 0

    config = load(written.read_bytes(), source="written", args_models=args_models(IN_TREE))
    assert config.pod_max_backoff_seconds == 42
    assert config.leader_election.leader_elect is False
    enabled = [entry.name for entry in config.profiles[0].plugins.multi_point.enabled]
    assert (len(enabled), "ImageLocality" in enabled) == (19, False)
    # As it was written, so it stays.
    again = tmp_path / "again.yaml"
    assert cli.main(["run", "--config", str(written), "--write-config-to", str(again)]) == 0
    assert again.read_text() == written.read_text()
    # It may have keys of extenders.
    assert written.stat().st_mode & 0o777 == 0o600


def test_the_effective_configuration_is_not_written_through_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    assert cli.main(["run", "--write-config-to", str(link)]) == 2
    assert f"--write-config-to {link}: is a symbolic link" in capsys.readouterr().err
    assert not target.exists()


def test_a_configuration_that_could_not_run_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, written = tmp_path / "given.yaml", tmp_path / "written.yaml"
    given.write_text(FILE.replace("disabled", "enabled").replace("ImageLocality", "Nobody"))
    assert cli.main(["run", "--config", str(given), "--write-config-to", str(written)]) == 2
    assert "Nobody" in capsys.readouterr().err
    assert not written.exists()


def test_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = tmp_path / "nobody" / "x.yaml"
    assert cli.main(["run", "--write-config-to", str(nowhere)]) == 2
    assert capsys.readouterr().err == (
        f"berth run: --write-config-to {nowhere}: No such file or directory\n"
    )


@pytest.mark.parametrize(
    ("flag", "has"),
    [
        pytest.param("--version", "berth ", id="the version"),
        pytest.param("--version=raw", "(kube-scheduler 1.37; ", id="all of it"),
    ],
)
def test_version(flag: str, has: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", flag]) == 0
    assert has in capsys.readouterr().out


def test_gates_that_cannot_be_had_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--feature-gates=SchedulerQueueingHints=false"]) == 2
    assert capsys.readouterr().err == (
        "berth run: --feature-gates: cannot set feature gate SchedulerQueueingHints to false,"
        " feature is locked to true\n"
    )
    assert cli.main(["run", "--feature-gates=TopologyAwareWorkloadScheduling=true"]) == 2
    assert capsys.readouterr().err == (
        "berth run: --feature-gates: TopologyAwareWorkloadScheduling is enabled, but depends on"
        " features that are disabled: [GenericWorkload]\n"
    )


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "-h"])
    assert ended.value.code == 0
    assert "--write-config-to" in capsys.readouterr().out


def test_earlier_recordings_stay_where_the_kubeconfig_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier, missing = tmp_path / "day.json.gz", tmp_path / "none"
    earlier.write_bytes(b"earlier")

    status = cli.main(["run", "--kubeconfig", str(missing), "--record", str(earlier)])

    assert status == 2
    assert str(missing) in capsys.readouterr().err
    assert earlier.read_bytes() == b"earlier"
    assert [*tmp_path.iterdir()] == [earlier]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        pytest.param(["--shard-label=pool"], "--shard-label needs --shards", id="no shards"),
        pytest.param(
            ["--shards", "--shard-pools=a"], "--shard-pools needs --shard-label", id="no label"
        ),
        pytest.param(
            ["--shards", "--shard-label=pool", "--shard-pools=a,b", "--shard-pool=c"],
            "--shard-pool c is not among --shard-pools",
            id="an unknown pool",
        ),
        pytest.param(
            ["--shards", "--shard-label=pool", "--shard-pools=a,a"],
            "'a,a': must be different values of a label",
            id="a pool twice",
        ),
        pytest.param(["--shards", "--shard-label=a b"], "the key of a label", id="no key"),
    ],
)
def test_pools_of_shards(flags: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", *flags])
    assert why in capsys.readouterr().err
