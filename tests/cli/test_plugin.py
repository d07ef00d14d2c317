"""``berth plugin``: what is written works as it is, and what is listed is there."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth import cli
from berth.cli.plugin import ScaffoldError, write_package
from berth_plugins.registry import IN_TREE

PLUGIN = """
from berth.plugin import ScalarFilter, ScalarScore

class Mine(ScalarFilter, ScalarScore):
    NAME = "Mine"

    def filter_node(self, state, pod, node_info):
        return None

    def score_node(self, state, pod, node_info):
        return 0
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Mine}]}}
"""


def test_a_package_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plugin", "new", "NodeShare2", "--dir", str(tmp_path)]) == 0

    folder = tmp_path / "berth-node-share2"
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) == [
        "README.md",
        "config.yaml",
        "pyproject.toml",
        "src/node_share2/__init__.py",
        "src/node_share2/plugin.py",
        "tests/test_plugin.py",
    ]
    entry = 'NodeShare2 = "node_share2.plugin:NodeShare2"'
    assert entry in (folder / "pyproject.toml").read_text()
    assert capsys.readouterr().out.startswith(f"{folder} has the plugin NodeShare2.")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NodeShare", "HTTPLoad", "A"])
def test_the_tests_of_the_package_pass_as_they_are(tmp_path: Path, name: str) -> None:
    folder = write_package(name, tmp_path)

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.slow
def test_the_package_is_in_good_style(tmp_path: Path) -> None:
    folder = write_package("NodeShare", tmp_path)
    tools = Path(sys.executable).parent

    for check in (["check", "--select", "E,F,W,UP,B,N"], ["format", "--check"]):
        done = subprocess.run(
            [tools / "ruff", *check, "--isolated", "--line-length", "100", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("node-share", "'node-share' must be letters", id="with a dash"),
        pytest.param("share", "'share' must be letters", id="without a capital"),
        pytest.param("NodeName", "'NodeName' is the name of an in-tree plugin", id="in-tree"),
        pytest.param(
            "BerthPlugins", "berth itself has a package 'berth_plugins'", id="a package of berth"
        ),
    ],
)
def test_names_that_cannot_be(tmp_path: Path, name: str, want: str) -> None:
    with pytest.raises(ScaffoldError, match=want):
        write_package(name, tmp_path)

    assert not list(tmp_path.iterdir())


def test_nothing_is_written_over(tmp_path: Path) -> None:
    folder = write_package("NodeShare", tmp_path)
    (folder / "README.md").write_text("mine")

    with pytest.raises(ScaffoldError, match="berth-node-share exists already"):
        write_package("NodeShare", tmp_path)

    assert (folder / "README.md").read_text() == "mine"


def test_known_plugins_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "config.yaml").write_text(CONFIG)

    status = cli.main(
        ["plugin", "list", f"--plugin-dir={tmp_path}", f"--config={tmp_path / 'config.yaml'}"]
    )

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert status == 0
    assert ["NodeName", "filter", "default-scheduler", "in-tree"] in [
        [row[0], row[-3].rstrip(","), *row[-2:]] for row in rows if len(row) > 3
    ]
    assert rows[-1] == ["Mine", "filter,", "score", "default-scheduler", f"{tmp_path}/mine.py"]


def test_a_plugin_that_cannot_be_used_ends_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("import no_such_module")

    assert cli.main(["plugin", "list", f"--plugin-dir={tmp_path}"]) == 2
    assert capsys.readouterr().err == (
        f"berth plugin: {tmp_path}/mine.py: cannot be imported: ModuleNotFoundError:"
        " No module named 'no_such_module'\n"
    )


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("NodeShare", "berth-node-share"),
        ("GPUShare2", "berth-gpu-share2"),
        ("A1B", "berth-a1-b"),
        ("GPU", "berth-gpu"),
    ],
)
def test_words_of_a_name(tmp_path: Path, name: str, folder: str) -> None:
    assert write_package(name, tmp_path).name == folder


@pytest.mark.parametrize(
    ("output", "read"),
    [
        pytest.param("json", json.loads, id="json"),
        pytest.param("yaml", yaml.safe_load, id="yaml"),
    ],
)
def test_plugins_are_listed_for_programs(
    output: str, read: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plugin", "list", "--output", output]) == 0
    plugins = {plugin.pop("name"): plugin for plugin in read(capsys.readouterr().out)}

    assert plugins.keys() == IN_TREE.keys()
    assert plugins["NodeName"] == {
        "extensionPoints": ["filter"],
        "enabledIn": ["default-scheduler"],
        "origin": "in-tree",
    }


def test_names_of_plugins_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plugin", "list", "--output", "name"]) == 0
    assert capsys.readouterr().out.splitlines() == list(IN_TREE)
