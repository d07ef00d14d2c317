"""The template of hollow nodes as people write it: a Node manifest."""

from collections.abc import Mapping
from typing import Any

import msgspec

from berth.cluster.kubelet.node_template import NodeTemplate
from berth.manifests import ManifestError
from berth.objects.node import Node


def template_from(manifest: Mapping[str, Any], *, source: str) -> NodeTemplate:
    """Make the template of hollow nodes from a Node manifest.

    Taken are its labels, taints, and allocatable (or else capacity). Raises ManifestError when it
    is malformed; *source* names it there.
    """
    try:
        node = msgspec.convert(manifest, Node)
    except msgspec.ValidationError as exc:
        raise ManifestError(f"{source}: {exc}") from exc
    amounts = {k: str(v) for k, v in (node.status.allocatable or node.status.capacity).items()}
    base = NodeTemplate()
    prefix = node.metadata.name or base.prefix
    return NodeTemplate(
        prefix=prefix if prefix.endswith("-") else f"{prefix}-",
        resources=amounts,
        labels=node.metadata.labels,
        taints=tuple(
            {"key": t.key, "value": t.value, "effect": t.effect} for t in node.spec.taints
        ),
    )
