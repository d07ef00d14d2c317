"""The embedded cluster and the hollow nodes that flags ask for."""

import argparse
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from berth.cli.flags.kube_controller_manager import controller_options
from berth.cli.settings.feature_gates import warn_of_gates_without_effect
from berth.cluster.access.tokens import Tokens, read_token_file
from berth.cluster.controllers.options import ControllerOptions
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.http.in_flight import DEFAULT, InFlightLimits
from berth.cluster.kubelet import configuration
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.node_template import NodePool
from berth.cluster.kubelet.template_manifest import pool_from
from berth.cluster.storage.database import Database
from berth.kube import manifests
from berth.runtime.addresses import LOOPBACK
from berth.runtime.clock import Clock, RealClock
from berth.runtime.terminal import UsageError
from berth.scheduler.config.feature_gates import enabled_features
from berth.tools.up.kubeconfig_out import KubeconfigOut


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
    """Make the cluster that the flags of ``add_cluster_flags`` ask for.

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
    """Return which kubeconfigs the flags of ``add_cluster_flags`` ask for."""
    return KubeconfigOut(given.kubeconfig_out, given.merge_kubeconfig)


def kubelet_configuration(path: Path | None) -> KubeletConfiguration:
    """Read what ``--kubelet-config`` names. Raises KubeletConfigurationError."""
    return KubeletConfiguration() if path is None else configuration.read(path)


def node_pools(given: argparse.Namespace, *, default: int = 0) -> list[NodePool]:
    """Return the nodes that the flags of ``add_node_flags`` ask for.

    *default* is how many there are of a shape that nobody says it of. Raises UsageError and
    ManifestError.
    """
    count, path = given.nodes, given.node_template
    count = default if count is None else count
    if path is None:
        return [NodePool(count)]
    found = list(manifests.read(path))
    if not found or any(obj["kind"] != "Node" for obj in found):
        kinds = [obj["kind"] for obj in found]
        raise UsageError(f"{path}: one or several Nodes are needed, got {kinds}")
    pools = [pool_from(obj, count=count, source=str(path)) for obj in found]
    prefixes = Counter(pool.template.prefix for pool in pools)
    for prefix, shapes in prefixes.items():
        if shapes > 1:
            raise UsageError(
                f"{path}: metadata.name: {prefix.removesuffix('-')!r}: names the nodes of {shapes}"
                " shapes; each needs a name of its own"
            )
    return pools
