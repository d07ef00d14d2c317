"""``docs/reference/node-groups.md``: the files of ``berth up --node-group``, from their models."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from berth.tools.autoscaler.node_groups import GroupSpec
from berth.tools.autoscaler.options import AutoscalingOptions
from docs.generate import markdown

INTRODUCTION = """\
`berth up --node-group` reads files with these objects of the API version `berth/v1`.
[Cluster autoscaler](../autoscaler.md) has an example."""
GROUP = """\
Any number; `metadata.name` is the name of the group. These are the fields of `spec`:"""
OPTIONS = """\
At most one. `args` has flags of cluster-autoscaler, with its defaults:"""


def page() -> str:
    return markdown.page(
        "Node groups",
        INTRODUCTION,
        "## NodeGroup",
        GROUP,
        markdown.table(("Field", "Default", "Meaning"), _rows(GroupSpec)),
        "## ClusterAutoscaler",
        OPTIONS,
        markdown.table(("Flag", "Default", "Meaning"), _rows(AutoscalingOptions)),
        source="the models of berth.tools.autoscaler",
    )


def _rows(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        yield (
            markdown.code(field.alias or name),
            "required" if field.is_required() else markdown.code(_written(field.default)),
            markdown.plain(f"{field.description}."),
        )


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=str).strip('"')
