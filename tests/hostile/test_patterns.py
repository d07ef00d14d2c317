"""Regular expressions take time linear in their text, whatever it is."""

import ast
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.hostile.backtracking import MOST, matches, pumped, steps

ROOT: Final = Path(__file__).parents[2]
SCANS: Final = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
USES: Final = SCANS | {"match", "fullmatch"}
LENGTH: Final = 40
"""Characters of the shorter text; the other is twice as long."""


class Use(NamedTuple):
    """A pattern in the source, and what is done with it."""

    pattern: re.Pattern[Any]
    methods: frozenset[str]


IN_FUNCTIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], list[re.Pattern[str]]]]] = {
    "berth.cluster.strategies.syntax": lambda module: [
        re.compile(module[f"_{name}"], re.ASCII)
        for name in ("LABEL", "SUBDOMAIN", "DNS_1035", "NAME_PART", "LABEL_VALUE")
    ],
    "berth.scheduler.config.decode": lambda module: [
        pattern for pattern, _ in module["_SCALARS"].values()
    ],
}
"""Modules with a function that compiles whatever pattern it is given, and those that it is given.
All of them are matched with a whole text."""


def modules() -> dict[str, Path]:
    """Return the files of the source that import ``re``, by the names of their modules."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for root in (ROOT / "app", ROOT / "plugins")
        for path in sorted(root.glob("**/*.py"))
        if "\nimport re\n" in path.read_text("utf-8")
    }


MODULES: Final = modules()


def uses_in(name: str) -> Iterator[Use]:
    """Yield every regular expression in the source of a module."""
    tree = ast.parse(MODULES[name].read_text("utf-8"))
    module = vars(importlib.import_module(name))
    names = {
        id(each.value): ast.unparse(target)
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign | ast.AnnAssign)
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=called)) if (
                called in USES or called == "compile"
            ):
                pass
            case _:
                continue
        written = node.args[:1] if called != "compile" else node.args
        flags = [word for word in node.keywords if word.arg == "flags"]
        compiled = ast.Call(ast.parse("re.compile", mode="eval").body, written, flags)
        expression = ast.fix_missing_locations(ast.Expression(compiled))
        try:
            pattern = eval(compile(expression, name, "eval"), dict(module))
        except NameError:
            assert name in IN_FUNCTIONS, "no pattern is a stranger's"
            for each in IN_FUNCTIONS[name](module):
                yield Use(each, frozenset({"fullmatch"}))
            continue
        methods = {called} if called in USES else set(_methods(tree, names.get(id(node), "")))
        yield Use(pattern, frozenset(methods or SCANS))


def _methods(tree: ast.Module, name: str) -> Iterator[str]:
    """Yield what the module calls of the pattern *name*."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == name:
            yield node.attr


def growth(pattern: re.Pattern[Any], methods: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yield texts on which *pattern* takes more than twice the steps for twice the length."""
    scans, whole = bool(methods & SCANS), methods == {"fullmatch"}
    for text in pumped(pattern, pairs=15):
        many = steps(pattern, text.of(2 * LENGTH), scans=scans, whole=whole)
        if many <= 20 * LENGTH:
            continue
        few = steps(pattern, text.of(LENGTH), scans=scans, whole=whole)
        if many == MOST or many > 2.6 * few:
            yield text.of(8), few, many


@pytest.mark.parametrize("module", MODULES)
def test_steps_are_linear_in_the_text(module: str) -> None:
    worst = [(use.pattern, next(growth(*use), None)) for use in uses_in(module)]
    assert [(pattern, grows) for pattern, grows in worst if grows] == []


@pytest.mark.parametrize(
    "module", ["berth.kube.objects.quantity", "berth.runtime.redaction", *IN_FUNCTIONS]
)
def test_patterns_are_found(module: str) -> None:
    assert list(uses_in(module))


@pytest.mark.parametrize(
    ("pattern", "methods"),
    [
        (r"(a+)+$", {"match"}),
        (r"(a|a)*b", {"match"}),
        (r"\s*(?:=\s*(?P<value>[^\s,]*))?\s*(?P<end>,|\Z)", {"match"}),
        (r"[0-9]*\.?[0-9]*x", {"match"}),
        (r"a*b", {"search"}),
        (r"\s+$", {"sub"}),
        (r"(?:[^\\,]|\\.|.)+,", {"fullmatch"}),
    ],
)
def test_what_is_not_linear_is_found(pattern: str, methods: set[str]) -> None:
    assert next(growth(re.compile(pattern), frozenset(methods)), None) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "takes"),
    [
        (r"[ab]+c", "abababc", True),
        (r"(?:a|bc){2,3}?d", "abcad", True),
        (r"(?:a|bc){2,3}d", "ad", False),
        (r"a*+a", "aaa", False),
        (r"(?>a*)b", "aaab", True),
        (r"(?<!x)a(?=b)b\b", "ab", True),
        (r"(?i)TOKEN\s?=\s?(?P<x>[^,\n]+)", "token = 7", True),
        (r"[^a-c]\W\d$", "x-7", True),
        (r"a.c", "a\nc", False),
    ],
)
def test_the_matcher_is_as_pythons(pattern: str, text: str, takes: bool) -> None:
    compiled = re.compile(pattern)
    assert (compiled.fullmatch(text) is not None) is takes
    assert matches(compiled, text) is takes
