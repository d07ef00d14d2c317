"""Renders the chart as Helm does, without Helm."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import yaml
from gotpl.exts.helm import HelmTemplateEngine
from gotpl.funcs.helm.functions import load_yaml

Object = dict[str, Any]
Values = Mapping[str, Any]

CHART: Final = Path(os.environ.get("BERTH_CHART", Path(__file__).parents[2] / "helm/berth"))
"""The chart of this repository, or one that is unpacked elsewhere."""
RELEASE: Final = "release"
NAMESPACE: Final = "berth-system"
HELM: Final = shutil.which("helm")
REQUIRED: Final[Values] = {"image": {"repository": "registry.example.com/berth"}}
"""What everybody has to say."""


class RenderError(Exception):
    """The chart refuses values; the message is that of ``fail``, ``required`` or the schema."""


class Files:
    """``.Files`` of templates."""

    def Get(self, name: str) -> str:  # noqa: N802 - Helm's name
        path = CHART / name
        return path.read_text(encoding="utf-8") if path.is_file() else ""


def render(values: Values | None = None) -> list[Object]:
    """Return the objects that `helm template` has for *values*. Raises RenderError."""
    return objects_of(render_texts(values))


def notes(values: Values | None = None) -> str:
    """Return what an installation says at its end. Raises RenderError."""
    return render_texts(values)["NOTES.txt"]


def objects_of(texts: Mapping[str, str]) -> list[Object]:
    return [
        document
        for name, text in texts.items()
        if name.endswith(".yaml")
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader)
        if document is not None
    ]


def render_texts(values: Values | None = None) -> Mapping[str, str]:
    """Return what each template becomes, by its path below ``templates``. Raises RenderError."""
    return _rendered(json.dumps(merge(REQUIRED, values or {})))


@cache
def _rendered(values: str) -> Mapping[str, str]:
    merged = merge(default_values(), json.loads(values))
    problem = schema_problem(merged)
    if problem:
        raise RenderError(problem)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    context = {
        "Values": merged,
        "Chart": {key[0].upper() + key[1:]: value for key, value in chart.items()},
        "Release": {"Name": RELEASE, "Namespace": NAMESPACE, "Service": "Helm", "Revision": 1},
        "Files": Files(),
    }
    names = [name for name in sources() if not name.endswith(".tpl")]
    try:
        return engine().render(dict.fromkeys(names, context))
    except Exception as exc:  # whatever a template stumbles over
        raise RenderError(str(exc)) from exc


@cache
def engine() -> HelmTemplateEngine:
    return HelmTemplateEngine.from_sources(sources())


@cache
def sources() -> dict[str, str]:
    folder = CHART / "templates"
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def default_values() -> Object:
    return deepcopy(_default_values())


@cache
def _default_values() -> Object:
    loaded = load_yaml((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def merge(under: Values, over: Values) -> Object:
    """Return *under* with *over* laid on it; null takes a value away, as with Helm."""
    merged = dict(under)
    for key, value in over.items():
        old = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


@cache
def schema() -> Object:
    loaded: Object = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return loaded


def schema_problem(values: Values) -> str:
    """Return what the schema has against *values* as ``field: problem``; "" if nothing."""
    found = list(jsonschema.Draft7Validator(schema()).iter_errors(values))
    return "; ".join(f"{'.'.join(map(str, e.absolute_path))}: {e.message}" for e in found)


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [object_ for object_ in objects if object_["kind"] == kind]


def deployment(objects: list[Object]) -> Object:
    [found] = of_kind(objects, "Deployment")
    return found


def walk(value: Any, *, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield everything inside *value* with the path to it."""
    yield path, value
    children: Iterator[tuple[Any, Any]]
    if isinstance(value, Mapping):
        children = iter(value.items())
    elif isinstance(value, list):
        children = iter(enumerate(value))
    else:
        return
    for key, child in children:
        yield from walk(child, path=f"{path}.{key}")
