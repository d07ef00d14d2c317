"""Overrides of a configuration by kube-scheduler's flags (spec §7.2)."""

from typing import Any

from berth.cli.settings.feature_gates import with_gates
from berth.scheduler.config.options import Options
from berth.scheduler.config.types import KubeSchedulerConfiguration

_LEADER_ELECTION = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}
_CLIENT_CONNECTION = {
    "kubeconfig": "kubeconfig",
    "kube_api_content_type": "content_type",
    "kube_api_qps": "qps",
    "kube_api_burst": "burst",
}
_PROFILING = {
    "profiling": "enable_profiling",
    "contention_profiling": "enable_contention_profiling",
}


def apply_flags(config: KubeSchedulerConfiguration, options: Options) -> KubeSchedulerConfiguration:
    """Override *config* by the flags that were given.

    Those of leader election and feature gates always win; the deprecated ones only count without a
    file. Raises ConfigError for feature gates that cannot be had.
    """
    top: dict[str, Any] = {}
    client: dict[str, Any] = {}
    if not options.config:
        top = _given(options, _PROFILING)
        client = _given(options, _CLIENT_CONNECTION)
    election = _given(options, _LEADER_ELECTION)
    config = with_gates(config, gates=options.versions.feature_gates)
    return config.model_copy(
        update={
            **top,
            "client_connection": config.client_connection.model_copy(update=client),
            "leader_election": config.leader_election.model_copy(update=election),
        }
    )


def _given(options: Options, targets: dict[str, str]) -> dict[str, Any]:
    values = options.values()
    return {target: values[flag] for flag, target in targets.items() if flag in options.explicit}
