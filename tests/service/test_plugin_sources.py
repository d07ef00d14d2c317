"""Plugins by others are found, or the reason is told why one cannot be used."""

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from textwrap import dedent

import pytest

from berth.scheduler.config.errors import ConfigError
from berth.service import plugin_sources
from berth.service.plugin_sources import IN_TREE_ORIGIN, KnownPlugins, files_in, points_of
from berth_plugins.registry import IN_TREE

SCORE = """
from berth.scheduler.framework.scalar import ScalarScore

class {name}(ScalarScore):
    NAME = "{name}"

    def score_node(self, state, pod, node_info):
        return {score}
"""


def score(name: str = "Mine", value: int = 1) -> str:
    return SCORE.format(name=name, score=value)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module on the path with the plugin ``Mine``; its name."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "berth_test_mine.py").write_text(score())
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "berth_test_mine", raising=False)
    return "berth_test_mine"


def installed(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    entry = EntryPoint(name, value, plugin_sources.GROUP)
    monkeypatch.setattr(plugin_sources, "entry_points", lambda group: EntryPoints([entry]))


def test_without_others_there_are_those_in_tree() -> None:
    known = KnownPlugins.find()

    assert known.registry == IN_TREE
    assert set(known.origins.values()) == {IN_TREE_ORIGIN}
    assert known.as_flags == ()


def test_a_file_defines_plugins(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(score())

    known = KnownPlugins.find(directories=[tmp_path])

    assert points_of(known.registry["Mine"]) == ["score"]
    assert known.origins["Mine"] == str(path)
    assert known.as_flags == (f"--plugin-dir={tmp_path}",)


def test_an_installed_package_offers_a_plugin(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, "Mine", f"{package}:Mine")

    known = KnownPlugins.find()

    assert known.origins["Mine"] == f"entry point Mine = {package}:Mine"


def test_a_reference_is_another_name_of_the_plugin(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, "Mine", f"{package}:Mine")

    known = KnownPlugins.find(references=[f"{package}:Mine"])

    assert known.aliases == {f"{package}:Mine": "Mine"}
    assert known.origins["Mine"] == f"entry point Mine = {package}:Mine"
    assert known.as_flags == (f"--plugin={package}:Mine",)


def test_a_configuration_says_which_references_to_import(package: str) -> None:
    document = {
        "profiles": [
            {
                "plugins": {"score": {"enabled": [{"name": f"{package}:Mine"}, {"name": "X"}]}},
                "pluginConfig": [{"name": f"{package}:Mine"}],
            },
            "nonsense",
        ]
    }

    known = KnownPlugins.find().referred_in(document, source="config.yaml")

    assert known.aliases == {f"{package}:Mine": "Mine"}


def test_a_changed_file_is_another_class_and_an_unchanged_one_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(score(value=1))
    first = KnownPlugins.find(directories=[tmp_path]).registry["Mine"]
    again = KnownPlugins.find(directories=[tmp_path]).registry["Mine"]
    path.write_text(score(value=2))
    changed = KnownPlugins.find(directories=[tmp_path]).registry["Mine"]

    assert again is first
    assert changed is not first


def test_hidden_files_and_folders_are_no_plugins(tmp_path: Path) -> None:
    """A mounted ConfigMap has links that begin with two dots, Python leaves byte code."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "__pycache__").mkdir()
    for name in ("..2026.py", "_shared.py", "notes.txt", "mine.py"):
        (tmp_path / name).write_text("")

    assert files_in([tmp_path]) == [tmp_path / "mine.py"]


@pytest.mark.parametrize(
    ("source", "want"),
    [
        pytest.param(
            "import no_such_module_anywhere",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_anywhere'",
            id="a file that imports what is not there",
        ),
        pytest.param(
            "def broken(:\n",
            "cannot be imported: SyntaxError: invalid syntax (mine.py, line 1)",
            id="a file that is not Python",
        ),
        pytest.param(
            "x = 1",
            "defines no plugin: a subclass of Plugin with a NAME",
            id="a file without plugins",
        ),
        pytest.param(
            score("NodeName"),
            "plugin 'NodeName': there is one of that name: in-tree",
            id="a plugin that is called as one in-tree",
        ),
        pytest.param(
            """
            from berth.scheduler.framework.interface import ReservePlugin

            class Mine(ReservePlugin):
                NAME = "Mine"
            """,
            "plugin 'Mine' does not implement reserve, unreserve",
            id="a plugin without its methods",
        ),
        pytest.param(
            """
            from berth.scheduler.framework.interface import Plugin

            class Mine(Plugin):
                NAME = "Mine"
            """,
            "plugin 'Mine' implements no extension point",
            id="a plugin without an extension point",
        ),
        pytest.param(
            score().replace("class", "class A:\n    pass\n\nclass") + "    ARGS = A\n",
            "plugin 'Mine': ARGS must be a subclass of PluginArgs, not"
            " <class 'berth_plugin_mine_HASH.A'>",
            id="args that are no model",
        ),
        pytest.param(
            score().replace('NAME = "Mine"', 'NAME = "a:B"'),
            "Mine.NAME: 'a:B' must be a name without a colon",
            id="a name that looks like a reference",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, source: str, want: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(dedent(source))

    with pytest.raises(ConfigError) as caught:
        KnownPlugins.find(directories=[tmp_path])

    (problem,) = caught.value.problems
    if "HASH" in want:
        want = want.replace("HASH", problem.split("berth_plugin_mine_")[1].split(".")[0])
    assert str(caught.value) == f"{path}: {want}"
    assert problem == want


def test_two_plugins_of_one_name_are_both_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(score())

    with pytest.raises(ConfigError) as caught:
        KnownPlugins.find(directories=[tmp_path])

    assert str(caught.value) == (
        f"{tmp_path}/two.py: plugin 'Mine': there is one of that name: {tmp_path}/one.py"
    )


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        pytest.param(
            "Mine", "no_such_package:Mine",
            "entry point Mine = no_such_package:Mine: cannot be imported:"
            " ModuleNotFoundError: No module named 'no_such_package'",
            id="that cannot be imported",
        ),
        pytest.param(
            "Other", "berth_test_mine:Mine",
            "entry point Other = berth_test_mine:Mine: an entry is called as its plugin, 'Mine'",
            id="called otherwise than its plugin",
        ),
        pytest.param(
            "Mine", "berth_test_mine:SCORES",
            "entry point Mine = berth_test_mine:SCORES: cannot be imported: AttributeError:"
            " module 'berth_test_mine' has no attribute 'SCORES'",
            id="to what is not there",
        ),
        pytest.param(
            "Mine", "json:loads",
            "entry point Mine = json:loads: LOADS is no subclass of"
            " berth.scheduler.framework.interface.Plugin",
            id="to what is no plugin",
        ),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("package")
def test_an_entry_point_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, want: str
) -> None:
    import json

    installed(monkeypatch, name, value)

    with pytest.raises(ConfigError) as caught:
        KnownPlugins.find()

    assert str(caught.value) == want.replace("LOADS", repr(json.loads))


def test_a_reference_that_cannot_be_imported_is_named_with_its_field() -> None:
    document = {"profiles": [{"plugins": {"score": {"enabled": [{"name": "no_such:Mine"}]}}}]}

    with pytest.raises(ConfigError) as caught:
        KnownPlugins.find().referred_in(document, source="config.yaml")

    assert str(caught.value) == (
        "config.yaml: profiles[0].plugins.score.enabled[0].name: 'no_such:Mine':"
        " cannot be imported: ModuleNotFoundError: No module named 'no_such'"
    )


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: plugin directory: No such file or directory"):
        KnownPlugins.find(directories=[tmp_path / "nowhere"])


SHARED = "VALUE = {value}\n"
SHARING = """
from berth.plugin import CycleState, NodeTable, PodInfo, ScorePlugin, Scores, everywhere

from ._shared import VALUE


class {name}(ScorePlugin):
    NAME = "{name}"
    VALUE = VALUE

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return everywhere(VALUE, nodes.size)
"""


def test_files_of_a_folder_share_what_is_in_another(tmp_path: Path) -> None:
    """It is read again when it has changed, and leaves no byte code behind."""
    (tmp_path / "_shared.py").write_text(SHARED.format(value=1))
    for name in ("One", "Two"):
        (tmp_path / f"{name.lower()}.py").write_text(SHARING.format(name=name))
    first = KnownPlugins.find(directories=[tmp_path]).registry
    (tmp_path / "_shared.py").write_text(SHARED.format(value=2))
    changed = KnownPlugins.find(directories=[tmp_path]).registry

    assert [vars(first[name])["VALUE"] for name in ("One", "Two")] == [1, 1]
    assert [vars(changed[name])["VALUE"] for name in ("One", "Two")] == [2, 2]
    assert not (tmp_path / "__pycache__").exists()
