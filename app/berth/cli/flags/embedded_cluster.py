"""The embedded cluster and the hollow nodes that flags ask for."""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from berth.cli.flags.kube_controller_manager import add_controller_flags, controller_options
from berth.cli.flags.versions import add_feature_gates, warn_of_gates
from berth.cluster.http.in_flight import DEFAULT, InFlightLimits
from berth.runtime.addresses import KUBECONFIG, LOOPBACK
from berth.runtime.release import RELEASE, RELEASES, EffectiveVersion
from berth.runtime.terminal import UsageError, port, positive
from berth.scheduler.config.feature_gates import Features, enabled_features

if TYPE_CHECKING:
    from berth.cluster.controllers.options import ControllerOptions
    from berth.cluster.embedded_cluster import EmbeddedCluster
    from berth.cluster.kubelet.configuration import KubeletConfiguration
    from berth.cluster.kubelet.node_template import NodePool
    from berth.runtime.clock import Clock
    from berth.tools.up.kubeconfig_out import KubeconfigOut


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
        "--disable-admission-plugins", type=_plugins, default=frozenset(), metavar="NAMES",
        help="admission plugins of kube-apiserver that are not to run, with commas between them",
    )  # fmt: skip
    parser.add_argument(
        "--insecure", action="store_true",
        help="serve the API over plain HTTP: anyone who can reach the port has all rights",
    )  # fmt: skip
    parser.add_argument(
        "--kubernetes-version", choices=RELEASES, default="", metavar="VERSION",
        help=f"release of Kubernetes that the API server serves: {' or '.join(RELEASES)}; default:"
        f" that of the scheduler where there is one, else {RELEASE}",
    )  # fmt: skip
    add_controller_flags(parser)


def _plugins(text: str) -> frozenset[str]:
    from berth.cluster.writes.admission.steps import read_plugins  # takes long to load

    try:
        return read_plugins(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def embedded_cluster(
    given: argparse.Namespace,
    *,
    host: str = LOOPBACK,
    names: Sequence[str] = (),
    limits: InFlightLimits = DEFAULT,
    clock: "Clock | None" = None,
    rng: random.Random | None = None,
    features: Features | None = None,
    options: "ControllerOptions | None" = None,
) -> "EmbeddedCluster":
    """Make the cluster that the flags of ``add_cluster_flags`` ask for.

    *clock* and *rng* are by default the machine's and an unpredictable one. It listens at the
    address *host*, and its certificate is good for *names*, too. *limits* are for requests in
    progress. *features* are what is on in it where the flags do not say all, and *options* those of
    its controllers, by default those of the flags.
    Raises ConfigError, TokenFileError and DatabaseError.
    """
    from berth.cluster.access.tokens import Tokens, read_token_file
    from berth.cluster.embedded_cluster import EmbeddedCluster
    from berth.cluster.storage.database import Database
    from berth.runtime.clock import RealClock

    if features is None:
        version = EffectiveVersion.of(given.kubernetes_version)
        warn_of_gates(given.feature_gates, version)
        features = enabled_features(given.feature_gates, version)
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
        features=features.gates,
        release=features.version.emulation,
        disabled_admission_plugins=given.disable_admission_plugins,
        database=None if given.data_dir is None else Database(given.data_dir),
    )


def kubeconfig_out(given: argparse.Namespace) -> "KubeconfigOut":
    """Return which kubeconfigs the flags of ``add_cluster_flags`` ask for."""
    from berth.tools.up.kubeconfig_out import KubeconfigOut

    return KubeconfigOut(given.kubeconfig_out, given.merge_kubeconfig)


def kubelet_configuration(path: Path | None) -> "KubeletConfiguration":
    """Read what ``--kubelet-config`` names. Raises KubeletConfigurationError."""
    from berth.cluster.kubelet.configuration import KubeletConfiguration, read

    return KubeletConfiguration() if path is None else read(path)


def node_pools(given: argparse.Namespace, *, default: int = 0) -> "list[NodePool]":
    """Return the nodes that the flags of ``add_node_flags`` ask for.

    *default* is how many there are of a shape that nobody says it of. Raises UsageError and
    ManifestError.
    """
    from berth.cluster.kubelet.node_template import NodePool
    from berth.cluster.kubelet.template_manifest import pool_from
    from berth.kube import manifests

    count, path = given.nodes, given.node_template
    count = default if count is None else count
    if path is None:
        return [NodePool(count)]
    objects = list(manifests.read(path))
    if not objects or any(obj["kind"] != "Node" for obj in objects):
        kinds = [obj["kind"] for obj in objects]
        raise UsageError(f"{path}: one or several Nodes are needed, got {kinds}")
    pools = [pool_from(obj, count=count, source=str(path)) for obj in objects]
    prefixes = Counter(pool.template.prefix for pool in pools)
    for prefix, shapes in prefixes.items():
        if shapes > 1:
            raise UsageError(
                f"{path}: metadata.name: {prefix.removesuffix('-')!r}: names the nodes of {shapes}"
                " shapes; each needs a name of its own"
            )
    return pools
