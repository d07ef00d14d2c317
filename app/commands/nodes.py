"""Flags about hollow nodes and embedded clusters."""

import argparse
from pathlib import Path

from app import manifests
from app.cluster.kubelet.node_template import NodeTemplate
from app.commands.terminal import UsageError, port, positive
from app.embedded import template_from


def add_node_flags(parser: argparse.ArgumentParser, *, nodes: int) -> None:
    """Add ``--nodes``, *nodes* by default, and ``--node-template``."""
    parser.add_argument("--nodes", type=positive, default=nodes, help="how many hollow nodes")
    parser.add_argument(
        "--node-template", type=Path, metavar="FILE", help="a Node manifest that all nodes follow"
    )


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--port`` and ``--kubeconfig-out``."""
    parser.add_argument(
        "--port", type=port, default=0, help="port of the API server on loopback; 0: any free one"
    )
    parser.add_argument(
        "--kubeconfig-out", type=Path, default=Path("berth.kubeconfig"), metavar="FILE",
        help="where to write the kubeconfig",
    )  # fmt: skip


def node_template(path: Path | None) -> NodeTemplate:
    """Read what ``--node-template`` names. Raises UsageError and ManifestError."""
    if path is None:
        return NodeTemplate()
    found = list(manifests.read(path))
    if len(found) != 1 or found[0]["kind"] != "Node":
        kinds = [obj["kind"] for obj in found]
        raise UsageError(f"{path}: exactly one Node is needed, got {kinds}")
    return template_from(found[0], source=str(path))
