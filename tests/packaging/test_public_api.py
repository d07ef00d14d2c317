"""What plugin authors import, and that nothing shown to them imports anything else."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Final

import pytest

from berth import plugin, testing
from tests.docs.pages import ROOT

PLUGIN: Final = """
    ActionType BindPlugin CPU Change ChangeKind ClusterEvent ClusterEventWithHint Code CycleState
    Detail Diagnosis EnqueueExtensions EventResource Explains FilterPlugin FilterRunner Gang
    GatedUntilTold Handle HintIndex
    Ints Kind KubeStruct LabPlugin Lister Listers MAX_NODE_SCORE MEMORY Mask Node NodeInfo NodeTable
    ObjectMeta Overlay PASS
    PermitPlugin
    Plugin PluginArgs PluginWrites Pod PodBatch PodInfo PodTemplate PostBindPlugin PostFilterPlugin
    PostFilterResult PreBindPlugin PreEnqueuePlugin PreFilterExtensions PreFilterPlugin
    PreFilterResult PreScorePlugin QueueSortPlugin QueuedPodInfo QueueingHint QueueingHintFn
    Rejection ReservePlugin Rows SKIP ScalarFilter ScalarPreFilterExtensions ScalarScore ScorePlugin
    Scores Status Verdict WAIT default_normalize everywhere quantity
"""
TESTING: Final = """
    Evaluation Object Placement PluginFailedError configuration explain manifests node pod
    rejections run_filter run_score schedule scores
"""
"""A name that goes from these lists breaks plugins of others: only on purpose."""


@pytest.mark.parametrize(("module", "names"), [(plugin, PLUGIN), (testing, TESTING)])
def test_the_public_names(module: ModuleType, names: str) -> None:
    assert sorted(module.__all__) == names.split()


def described(path: Path) -> Iterator[str]:
    """Yield the names that a module assigns and describes in a string right after that."""
    assigned: set[str] = set()
    for statement in ast.parse(path.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            assigned |= {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield from assigned
        assigned.clear()


@pytest.mark.parametrize("module", [plugin, testing])
def test_every_public_name_is_described(module: ModuleType) -> None:
    sources = [
        ROOT / "app/berth/testing.py",
        *(ROOT / "app/berth/scheduler/framework").glob("*.py"),
    ]
    constants = {name for path in sources for name in described(path)}
    bare = {
        name
        for name in module.__all__
        if name not in constants and not _own_doc(getattr(module, name))
    }
    assert bare == set()


def _own_doc(thing: object) -> bool:
    """Whether somebody wrote a docstring; dataclasses and named tuples make one up."""
    if inspect.isclass(thing):
        doc = thing.__dict__.get("__doc__") or ""
        return bool(doc) and not doc.startswith(f"{thing.__name__}(")
    return (inspect.isfunction(thing) or inspect.ismodule(thing)) and bool(thing.__doc__)


@pytest.mark.parametrize("module", [plugin, testing])
def test_every_method_of_a_public_class_is_described(module: ModuleType) -> None:
    """By itself, or by the class that it inherits the method from."""
    classes = [thing for name in module.__all__ if inspect.isclass(thing := getattr(module, name))]
    bare = [
        f"{kind.__name__}.{name}"
        for kind in classes
        if kind.__module__.startswith("berth")
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property))
        and not inspect.getdoc(getattr(kind, name))
    ]
    assert bare == []


def test_the_example_in_the_docstring_works() -> None:
    example = re.search(r"::\n\n((?:    .*\n|\n)+)", plugin.__doc__ or "")
    assert example is not None
    exec(dedent(example[1]), {"__name__": "example"})


# Who shows code to plugin authors.

PUBLIC: Final = {"berth.cluster", "berth.plugin", "berth.testing"}
IMPORT: Final = re.compile(
    r"^[#\s]*(?:from (berth[\w.]*) import|import (berth[\w.]*))", re.MULTILINE
)

SHOWN: Final = [
    *(ROOT / "app/berth/cli/plugin_template").rglob("*.template"),
    *(ROOT / "examples").rglob("*.py"),
    *(ROOT / "examples").rglob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    ROOT / "README.md",
    ROOT / "helm/berth/values.yaml",
]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_modules_are_imported(path: Path) -> None:
    found = {a or b for a, b in IMPORT.findall(path.read_text("utf-8"))}
    assert found <= PUBLIC


def test_code_is_shown_that_imports_them() -> None:
    found = {a or b for path in SHOWN for a, b in IMPORT.findall(path.read_text("utf-8"))}
    assert found == PUBLIC
    assert all(importlib.import_module(name).__all__ for name in found)
