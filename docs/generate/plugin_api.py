"""``docs/reference/plugin-api.md``: what plugin authors import, from its docstrings."""

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from textwrap import dedent
from types import ModuleType
from typing import Any, Final

import berth.plugin
import berth.testing
from berth.runtime.field_docstrings import DescribedFields
from docs.generate import markdown
from docs.generate.sources import assigned, attribute_docs, module_tree

INTRODUCTION = """\
Import from `berth.plugin` in a plugin and from `berth.testing` in its tests. Every other module of
berth is private and may change in any release. [Plugins](../plugins.md) is the guide; this page is
the reference."""
SPECIFICATION: Final = "../specification.md"
WIDTH: Final = 96

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Extension points": (
        "Plugin", "PluginArgs", "PreEnqueuePlugin", "QueueSortPlugin", "EnqueueExtensions",
        "PreFilterPlugin", "PreFilterResult", "PreFilterExtensions", "FilterPlugin",
        "PostFilterPlugin", "PostFilterResult", "FilterRunner", "PreScorePlugin", "ScorePlugin",
        "Scores", "MAX_NODE_SCORE", "default_normalize", "ReservePlugin", "PermitPlugin",
        "PreBindPlugin", "BindPlugin", "PostBindPlugin",
    ),
    "Scalar plugins": ("ScalarFilter", "ScalarScore", "ScalarPreFilterExtensions"),
    "Answers": (
        "Status", "GatedUntilTold", "Code", "SKIP", "WAIT", "Verdict", "Rejection", "PASS", "Mask",
        "Rows", "Ints", "everywhere",
    ),
    "The pod and the cluster": (
        "CycleState", "Gang", "PodInfo", "PodTemplate", "QueuedPodInfo", "PodBatch", "NodeInfo",
        "NodeTable", "CPU", "MEMORY", "Overlay", "Diagnosis",
    ),
    "The scheduler": ("Handle", "PluginWrites", "Listers", "Lister", "Kind"),
    "Events": (
        "EventResource", "ActionType", "ClusterEvent", "ClusterEventWithHint", "Hint",
        "QueueingHint",
    ),
    "Explanations": ("Explains", "Detail", "Change", "ChangeKind"),
}  # fmt: skip
"""The order of the page; what is in none of them comes last."""


def page() -> str:
    return markdown.page(
        "Plugin API",
        INTRODUCTION,
        *_module(berth.plugin),
        *_module(berth.testing),
        source="the docstrings of berth.plugin and berth.testing",
    )


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## {module.__name__}"
    yield _text(module)
    left = list(module.__all__)
    for heading, names in GROUPS.items():
        shown = [name for name in names if name in left]
        if shown:
            yield f"**{heading}:** " + ", ".join(f"[{name}](#{name.lower()})" for name in shown)
    for name in [name for names in GROUPS.values() for name in names if name in left]:
        left.remove(name)
        yield from _member(module, name)
    for name in left:
        yield from _member(module, name)


def _member(module: ModuleType, name: str) -> Iterator[str]:
    yield f"### {name}"
    thing = getattr(module, name)
    if inspect.isclass(thing):
        yield from _class(name, thing)
    elif inspect.isfunction(thing):
        yield _signature(name, thing)
        yield _text(thing)
    else:
        yield _constant(module, name)


def _class(name: str, cls: type) -> Iterator[str]:
    bases = [
        base.__name__
        for base in cls.__bases__
        if base.__module__.startswith("berth") and base is not DescribedFields
    ]
    yield f"Inherits {', '.join(map(markdown.code, bases))}." if bases else ""
    yield _text(cls)
    if issubclass(cls, Enum):
        yield "Values: " + ", ".join(markdown.code(each.name) for each in cls) + "."
        return
    rows = list(_fields(cls))
    if rows:
        yield markdown.table(("Attribute", "Type", "Meaning"), rows)
    for method_name, method in vars(cls).items():
        if method_name.startswith("_") and not (method_name == "__init__" and method.__doc__):
            continue
        function = getattr(method, "__func__", getattr(method, "fget", method))
        if inspect.isfunction(function):
            shown = name if method_name == "__init__" else f"{name}.{method_name}"
            yield f"#### {shown}{'' if isinstance(method, property) else '()'}"
            yield _signature(shown, function, is_property=isinstance(method, property))
            yield _text(function)


def _fields(cls: type) -> Iterator[tuple[str, str, str]]:
    """Yield the public fields that the class declares: name, type, docstring."""
    notes = attribute_docs(cls)
    for statement in ast.parse(dedent(inspect.getsource(cls))).body[0].body:  # type: ignore[attr-defined] # a class
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                match statement.annotation:
                    case ast.Constant(value=str(shown)):
                        pass
                    case annotation:
                        shown = _unclassed(ast.unparse(annotation))
                yield markdown.code(name), markdown.code(shown), _line(notes.get(name, ""))


def _unclassed(annotation: str) -> str:
    return (
        annotation.removeprefix("ClassVar[").removesuffix("]")
        if "ClassVar" in annotation
        else annotation
    )


def _signature(name: str, function: Any, *, is_property: bool = False) -> str:
    """Return the signature as it is written, without self."""
    (node,) = ast.parse(dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if is_property:
        return f"```text\n{name}{returned.replace(' ->', ':')}\n```"
    arguments = node.args
    for group in (arguments.posonlyargs, arguments.args):
        if group and group[0].arg in ("self", "cls"):
            del group[0]
            break
    if name[0].isupper() and "." not in name:
        returned = ""  # a constructor
    keyword = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    line = f"{keyword}{name}({ast.unparse(arguments)}){returned}"
    if len(line) > WIDTH:
        inner = "".join(f"    {each},\n" for each in _parameters(arguments))
        line = f"{keyword}{name}(\n{inner}){returned}"
    return f"```text\n{line}\n```"


def _parameters(arguments: ast.arguments) -> list[str]:
    """Split written parameters at the commas that separate them."""
    parts, depth, start = [], 0, 0
    text = ast.unparse(arguments)
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def _constant(module: ModuleType, name: str) -> str:
    """Return the docstring of a constant or alias, from the module that defines it."""
    for statement in module_tree(module).body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return _constant(importlib.import_module(statement.module), alias.name)
    for statement in module_tree(module).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and name in assigned(statement):
            written = ast.unparse(statement.value) if statement.value else "..."
            note = _prose(attribute_docs(module).get(name, ""))
            return f"```text\n{name} = {written}\n```\n\n{note}".strip()
    return ""


def _text(thing: Any) -> str:
    return _prose(inspect.getdoc(thing) or "")


def _line(text: str) -> str:
    return " ".join(_prose(text).split())


def _prose(text: str) -> str:
    return markdown.prose(text, specification=SPECIFICATION)
