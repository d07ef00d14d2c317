"""Hollow nodes as people write them: a Node manifest for each shape."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.kube.manifests import ManifestError
from berth.kube.objects.node import Node

COUNT: Final = "berth.dev/count"
"""The annotation that says how many nodes of a shape there are."""
MOST_NODES: Final = 100_000


def pool_from(manifest: Mapping[str, Any], *, count: int, source: str) -> NodePool:
    """Make the nodes of one shape; *count* of them if the manifest does not say how many.

    Raises ManifestError as :func:`template_from` does.
    """
    template = template_from(manifest, source=source)
    said = (manifest.get("metadata") or {}).get("annotations") or {}
    text = said.get(COUNT)
    if text is not None:
        try:
            count = int(text)
        except ValueError:
            count = -1
        if not 0 <= count <= MOST_NODES:
            field = f"metadata.annotations[{COUNT}]"
            raise ManifestError(
                f"{source}: {field}: {text!r}: must be a number from 0 to {MOST_NODES}"
            )
    return NodePool(count, template)


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
