"""Flags about hollow nodes and embedded clusters."""

import argparse
from pathlib import Path

from berth.cli.flags.feature_gates import add_feature_gates
from berth.cli.flags.kube_controller_manager import add_controller_flags
from berth.runtime.addresses import KUBECONFIG
from berth.runtime.terminal import port, positive


def add_node_flags(parser: argparse.ArgumentParser, *, nodes: int, besides: str = "") -> None:
    """Add ``--nodes``, *nodes* by default, and ``--node-template``.

    With *besides*, the flag that brings other nodes, there are none by default if it is given.
    """
    unless = f"; default: {nodes}, or none with {besides}" if besides else ""
    parser.add_argument(
        "--nodes",
        type=positive,
        default=None if besides else nodes,
        help=f"number of hollow nodes, of each shape{unless}",
    )
    parser.add_argument(
        "--node-template",
        type=Path,
        metavar="FILE",
        help="Node manifests to use as templates, one for each shape; the annotation"
        " berth.dev/count says how many nodes of it there are, if not --nodes",
    )
    parser.add_argument(
        "--stages", default="fast", metavar="PROFILE|FILE",
        help="how pods live: fast, realistic or chaotic, or a file of rules; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--kubelet-config", type=Path, metavar="FILE",
        help="KubeletConfiguration of all nodes: eviction thresholds, reserved resources, maxPods",
    )  # fmt: skip


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """Add what is asked of any embedded cluster."""
    parser.add_argument(
        "--port", type=port, default=0, help="port of the API server; 0 selects a free port"
    )
    parser.add_argument(
        "--kubeconfig-out", type=Path, metavar="FILE",
        help=f"write the kubeconfig to this file; default: {KUBECONFIG}, or"
        f" {KUBECONFIG.stem}-2{KUBECONFIG.suffix} and so on beside others that run",
    )  # fmt: skip
    parser.add_argument(
        "--merge-kubeconfig", action="store_true",
        help="also add the cluster to $KUBECONFIG, or ~/.kube/config, and make it the current"
        " context; it is removed at the end",
    )  # fmt: skip
    parser.add_argument(
        "--data-dir", type=Path, metavar="FOLDER",
        help="keep the cluster in this folder: its objects, certificate authority and tokens."
        " Without this flag, nothing is kept",
    )  # fmt: skip
    parser.add_argument(
        "--token-auth-file", type=Path, metavar="FILE",
        help="additional API users: a CSV file with token, user, uid, and groups as \"a,b\"",
    )  # fmt: skip
    add_feature_gates(
        parser,
        text="feature gates of the API server, and of the scheduler where there is one, as"
        " Gate=true or Gate=false. GenericWorkload serves PodGroups and Workloads",
    )
    parser.add_argument(
        "--insecure", action="store_true",
        help="serve the API over plain HTTP: anyone who can reach the port has all rights",
    )  # fmt: skip
    add_controller_flags(parser)
