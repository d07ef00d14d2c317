"""``docs/reference/configuration.md``: the kinds of the configuration file, from their models.

A field is described by the docstring below it.
"""

import json
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_jsonable_python

from berth.runtime.duration import Duration
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE
from docs.generate import markdown
from docs.generate.sources import attribute_docs

INTRODUCTION = """\
`--config` takes one `KubeSchedulerConfiguration` of the API version
`kubescheduler.config.k8s.io/v1`. [Configuration](../configuration.md) has examples, and
[Compatibility](../compatibility.md#configuration-fields) lists the fields that differ from
kube-scheduler's or have no effect. `berth run --config FILE --write-config-to OUT` writes a
configuration with every default filled in."""
ARGS = """\
Each goes into `pluginConfig` of a profile, as `{name: PLUGIN, args: {...}}`. Plugins that are not
listed take no arguments."""

_OF_EVERY_ARGS: Final = {"api_version", "kind"}


def page() -> str:
    args, seen = args_models(IN_TREE), set[type]()
    return markdown.page(
        "Configuration API",
        INTRODUCTION,
        *models(KubeSchedulerConfiguration, seen, "##"),
        "## Plugin arguments",
        ARGS,
        *(
            part
            for plugin in sorted(args)
            for part in models(args[plugin], seen, "###", title=f"{plugin}Args")
        ),
        source="the models of berth.scheduler.config and of the in-tree plugins",
    )


def models(
    model: type[BaseModel], seen: set[type], level: str, *, title: str = ""
) -> Iterator[str]:
    """Yield a section for *model* and one for each model that its fields have, unless in *seen*."""
    seen.add(model)
    yield f"{level} {title or model.__name__}"
    yield markdown.prose(_first(model), specification="../specification.md")
    notes = _notes(model)
    rows, inner = [], []
    for name, field in model.model_fields.items():
        if title and name in _OF_EVERY_ARGS:
            continue
        rows.append(
            (
                markdown.code(field.serialization_alias or field.alias or name),
                _type(field.annotation),
                markdown.code(_default(field.get_default(call_default_factory=False))),
                markdown.prose(notes.get(name, ""), specification="../specification.md").replace(
                    "\n", " "
                ),
            )
        )
        inner += [each for each in _within(field.annotation) if each not in seen]
    yield markdown.table(("Field", "Type", "Default", "Meaning"), rows)
    for each in inner:
        if each not in seen:
            yield from models(each, seen, level)


def _first(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _notes(model: type[BaseModel]) -> dict[str, str]:
    notes: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            notes |= attribute_docs(each)
    return notes


def _type(annotation: Any) -> str:
    """Return a type in the words of the Kubernetes API reference."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin is typing.Literal:
        return " or ".join(markdown.code(str(each)) for each in arguments)
    if origin in (tuple, list):
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "object"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(each) for each in arguments if each is not type(None))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(markdown.code(str(each.value)) for each in annotation)
    names = {str: "string", int: "integer", float: "number", bool: "boolean", bytes: "base64"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)).lower())


def _within(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in typing.get_args(annotation):
        yield from _within(each)


def _default(value: Any) -> str:
    """Return a default as YAML would have it; nothing for none and for whole objects."""
    if value is PydanticUndefined or value is None or isinstance(value, BaseModel):
        return ""
    plain = str(value) if isinstance(value, Duration) else to_jsonable_python(value, by_alias=True)
    if plain in ("", [], {}):
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain)
