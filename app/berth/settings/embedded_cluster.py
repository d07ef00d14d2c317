"""The embedded cluster and the hollow nodes that flags ask for."""

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
from berth.flags.kube_controller_manager import controller_options
from berth.settings.feature_gates import warn_of_gates_without_effect
from berth.terminal import UsageError


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


def node_template(path: Path | None) -> NodeTemplate:
    """Read what ``--node-template`` names. Raises UsageError and ManifestError."""
    if path is None:
        return NodeTemplate()
    found = list(manifests.read(path))
    if len(found) != 1 or found[0]["kind"] != "Node":
        kinds = [obj["kind"] for obj in found]
        raise UsageError(f"{path}: exactly one Node is needed, got {kinds}")
    return template_from(found[0], source=str(path))
