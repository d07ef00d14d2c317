"""Flags about hollow nodes and embedded clusters."""

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from berth import manifests
from berth.addresses import LOOPBACK
from berth.clock import Clock, RealClock
from berth.cluster.access.tokens import Tokens, read_token_file
from berth.cluster.controllers.options import ControllerOptions
from berth.cluster.http.in_flight import DEFAULT, InFlightLimits
from berth.cluster.kubelet import configuration
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.cluster.kubelet.template_manifest import template_from
from berth.cluster.storage.database import Database
from berth.config.feature_gates import enabled_features
from berth.embedded.cluster import EmbeddedCluster
from berth.embedded.kubeconfig_out import KubeconfigOut
from berth.flags.feature_gates import add_feature_gates, warn_of_gates_without_effect
from berth.flags.kube_controller_manager import add_controller_flags, controller_options
from berth.kubeconfig import DEFAULT_PATH
from berth.terminal import UsageError, port, positive


def add_node_flags(parser: argparse.ArgumentParser, *, nodes: int, besides: str = "") -> None:
    """Add ``--nodes``, *nodes* by default, and ``--node-template``.

    With *besides*, the flag that brings other nodes, there are none by default if it is given.
    """
    unless = f"; default: {nodes}, or none with {besides}" if besides else ""
    parser.add_argument(
        "--nodes",
        type=positive,
        default=None if besides else nodes,
        help=f"number of hollow nodes{unless}",
    )
    parser.add_argument(
        "--node-template",
        type=Path,
        metavar="FILE",
        help="Node manifest to use as a template for all nodes",
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
        help=f"write the kubeconfig to this file; default: {DEFAULT_PATH}, or"
        f" {DEFAULT_PATH.stem}-2{DEFAULT_PATH.suffix} and so on beside others that run",
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


def embedded_cluster(
    given: argparse.Namespace,
    *,
    host: str = LOOPBACK,
    names: Sequence[str] = (),
    limits: InFlightLimits = DEFAULT,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    gates: Mapping[str, bool] | None = None,
    options: ControllerOptions | None = None,
) -> EmbeddedCluster:
    """Make the cluster that the flags of :func:`add_cluster_flags` ask for.

    *clock* and *rng* are by default the machine's and an unpredictable one. It listens at the
    address *host*, and its certificate is good for *names*, too. *limits* are for requests in
    progress. *gates* are those of its configuration, and *options* those of its controllers, by
    default those of the flags.
    Raises ConfigError, TokenFileError and DatabaseError.
    """
    if gates is None:
        gates = given.feature_gates
        warn_of_gates_without_effect(gates)
    tokens = Tokens()
    if given.token_auth_file is not None:
        for token, user in read_token_file(given.token_auth_file).items():
            tokens.add(token, user)
    return EmbeddedCluster(
        clock=clock or RealClock(),
        rng=rng or random.Random(),
        host=host,
        names=names,
        insecure=given.insecure,
        tokens=tokens,
        limits=limits,
        controller_options=options or controller_options(given),
        features=enabled_features(gates),
        database=None if given.data_dir is None else Database(given.data_dir),
    )


def kubeconfig_out(given: argparse.Namespace) -> KubeconfigOut:
    """Return which kubeconfigs the flags of :func:`add_cluster_flags` ask for."""
    return KubeconfigOut(given.kubeconfig_out, given.merge_kubeconfig)


def kubelet_configuration(path: Path | None) -> KubeletConfiguration:
    """Read what ``--kubelet-config`` names. Raises KubeletConfigurationError."""
    return KubeletConfiguration() if path is None else configuration.read(path)


def node_template(path: Path | None) -> NodeTemplate:
    """Read what ``--node-template`` names. Raises UsageError and ManifestError."""
    if path is None:
        return NodeTemplate()
    found = list(manifests.read(path))
    if len(found) != 1 or found[0]["kind"] != "Node":
        kinds = [obj["kind"] for obj in found]
        raise UsageError(f"{path}: exactly one Node is needed, got {kinds}")
    return template_from(found[0], source=str(path))
