"""Configurations that enable plugins by others: what is read, and what is refused."""

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from berth.cli.flags.configuration import (
    ENVIRONMENT,
    add_plugin_flags,
    configuration_source,
    known_plugins,
)
from berth.runtime.clock import FakeClock
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.framework.interface import Plugin
from berth.service.plugin_sources import KnownPlugins, files_in
from berth.service.reload import Reloader

PLUGINS = """
from berth.scheduler.framework.interface import PluginArgs
from berth.scheduler.framework.scalar import ScalarFilter, ScalarScore
from pydantic import Field

class Weights(PluginArgs):
    cpu: int = Field(default=1, ge=0)

class Args(PluginArgs):
    label_key: str
    weights: Weights = Weights()

class WithArgs(ScalarScore):
    NAME = "WithArgs"
    ARGS = Args

    def score_node(self, state, pod, node_info):
        return self.args.weights.cpu

class Plain(ScalarFilter):
    NAME = "Plain"

    def filter_node(self, state, pod, node_info):
        return None
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {{enabled: [{{name: "{scored}", weight: 2}}]}}
    filter: {{enabled: [{{name: Plain}}]}}
  pluginConfig:
  - name: ImageLocality
  - name: "{configured}"
    args: {args}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of plugins, which are also a module on the path: ``berth_test_args``."""
    path = tmp_path / "plugins"
    path.mkdir()
    (path / "mine.py").write_text(PLUGINS)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "berth_test_args.py").write_text(PLUGINS)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "berth_test_args", raising=False)
    return path


def flags(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_plugin_flags(parser)
    return parser.parse_args(argv)


def read(
    folder: Path, scored: str, configured: str, args: str
) -> tuple[KubeSchedulerConfiguration, KnownPlugins]:
    path = folder.parent / "config.yaml"
    path.write_text(CONFIG.format(scored=scored, configured=configured, args=args))
    return configuration_source(flags("--plugin-dir", str(folder)), file=str(path)).load()


def test_args_are_completed_by_the_plugins_own_model(folder: Path) -> None:
    config, _ = read(folder, "WithArgs", "WithArgs", "{labelKey: zone}")

    (profile,) = config.profiles
    assert [(e.name, e.weight) for e in profile.plugins.score.enabled] == [("WithArgs", 2)]
    assert profile.args("WithArgs") == {
        "kind": "WithArgsArgs",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "labelKey": "zone",
        "weights": {"cpu": 1},
    }


@pytest.mark.parametrize("configured", ["berth_test_args:WithArgs", "WithArgs"])
def test_args_of_a_reference_go_by_either_name(folder: Path, configured: str) -> None:
    (folder / "mine.py").write_text(PLUGINS.replace('NAME = "WithArgs"', 'NAME = "AnotherOne"'))

    config, known = read(folder, "berth_test_args:WithArgs", configured, "{labelKey: zone}")

    assert config.profiles[0].args("WithArgs")["labelKey"] == "zone"
    assert known.aliases == {"berth_test_args:WithArgs": "WithArgs"}


@pytest.mark.parametrize(
    ("scored", "configured", "args", "want"),
    [
        pytest.param(
            "WithArgs", "WithArgs", "{labelKey: zone, weights: {cpu: much}}",
            'profiles[0].pluginConfig[1].args.weights.cpu: Invalid value: "much": input should be a'
            " valid integer",
            id="a word for a number",
        ),
        pytest.param(
            "WithArgs", "WithArgs", "{labelKey: zone, weights: {cpu: -1}}",
            "profiles[0].pluginConfig[1].args.weights.cpu: Invalid value: -1: input should be"
            " greater than or equal to 0",
            id="a number out of range",
        ),
        pytest.param(
            "WithArgs", "WithArgs", "{labelkey: zone}",
            'strict decoding error: unknown field "profiles[0].pluginConfig[1].args.labelkey"',
            id="a field in the wrong spelling",
        ),
        pytest.param(
            "WithArgs", "WithArgs", "{}",
            "profiles[0].pluginConfig[1].args.labelKey: Required value",
            id="no value for what has no default",
        ),
        pytest.param(
            "ImageLocality", "Plain", "{x: 1}",
            "profiles[0].pluginConfig[1].args: Forbidden: plugin Plain (FOLDER/mine.py) takes no"
            " args",
            id="args for a plugin that takes none",
        ),
        pytest.param(
            "Unknown", "WithArgs", "{labelKey: zone}",
            'profiles[0].plugins.score.enabled[0].name: Not found: "Unknown"',
            id="a plugin that nobody has",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_field(
    folder: Path, scored: str, configured: str, args: str, want: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(folder, scored, configured, args)

    assert want.replace("FOLDER", str(folder)) in caught.value.problems


def test_folders_come_from_the_environment_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, f"{folder}:")

    assert known_plugins(flags()).directories == (folder,)


class Scene:
    """A configuration and a plugin file, read again whenever one of them has changed."""

    def __init__(self, folder: Path) -> None:
        self.config = folder.parent / "config.yaml"
        self.config.write_text(
            CONFIG.format(scored="WithArgs", configured="WithArgs", args="{labelKey: zone}")
        )
        self.in_force: list[type[Plugin]] = []
        self.counts: Counter[str] = Counter()
        self.reloader = Reloader(
            self.config,
            load=configuration_source(
                flags("--plugin-dir", str(folder)), file=str(self.config)
            ).load,
            replace=lambda loaded: self.in_force.append(loaded[1].registry["WithArgs"]),
            also=lambda: files_in([folder]),
            count=lambda result: self.counts.update([result]),
            clock=FakeClock(),
        )


@pytest.mark.parametrize(
    ("change", "results"),
    [
        pytest.param(
            {"mine.py": PLUGINS + "# changed\n"}, {"success": 1}, id="a plugin has changed"
        ),
        pytest.param({"mine.py": "import no_such"}, {"failure": 1}, id="a plugin is broken now"),
        pytest.param({"mine.py": "for ever: 1"}, {"failure": 1}, id="a plugin is no Python now"),
        pytest.param(
            {"other.py": dedent(PLUGINS).replace("WithArgs", "More").replace("Plain", "Too")},
            {"success": 1},
            id="another file has come",
        ),
    ],
)
def test_files_of_plugins_are_read_again(
    folder: Path,
    change: dict[str, str],
    results: dict[str, int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(folder)
    for name, text in change.items():
        (folder / name).write_text(text)

    assert scene.reloader.changed() == [folder / name for name in change]
    asyncio.run(scene.reloader.reload())

    assert scene.counts == results
    assert len(scene.in_force) == results.get("success", 0)
    assert scene.reloader.changed() == []
    wrong = [str(vars(record)["file"]) for record in caplog.records]
    assert wrong == [str(folder / name) for name in change][: results.get("failure", 0)]


def test_a_folder_of_plugins_that_is_gone_is_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(folder)
    folder.rename(folder.with_name("elsewhere"))

    assert scene.reloader.changed() == [folder, folder / "mine.py"]
    assert not asyncio.run(scene.reloader.reload())
    assert [str(vars(record)["file"]) for record in caplog.records] == [str(folder)]


UNSORTED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: PrioritySort}]}}}]
"""


def test_plugins_that_do_not_fit_together_are_told_of_the_file(folder: Path) -> None:
    path = folder.parent / "unsorted.yaml"
    path.write_text(UNSORTED)

    with pytest.raises(ConfigError) as error:
        configuration_source(flags(), file=str(path)).load()

    assert str(error.value) == (
        f"{path}: profiles[0].plugins.queueSort: Invalid value: []: exactly one queue sort plugin"
        " is needed"
    )
