"""One scenario in, one decision out, in the shape of the recordings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.config.defaults import DEFAULT_SCHEDULER_NAME
from app.config.load import default_configuration, from_object
from app.config.types import KubeSchedulerConfiguration
from app.framework.cycle_state import CycleState
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo
from app.framework.status import Code, Status
from app.objects.pod import Pod
from app.offline.scenario import OfflineHandle, Scenario, ScenarioError, read, smallest_name
from app.offline.unsupported import unjudged
from app.profile.build import Registry, args_models, build_profiles, missing_plugins
from app.scheduler.decision import Decision
from app.scheduler.find_node import NodeFinder

ALL_NODES = 100
"""Recordings look at all nodes, whatever percentageOfNodesToScore says."""


def explain(scenario: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
    """Decide for ``scenario["pod"]`` and tell everything that was found.

    A pod that needs plugins which are not there gets ``{"id", "unsupported"}``. Raises
    ScenarioError or ConfigError when the scenario is malformed.
    """
    identity = scenario.get("id")
    if "pod" not in scenario:
        return {"id": identity, "unsupported": "a sequence of pods; explain takes one pod"}
    config = configuration(scenario, registry)
    cluster = Scenario.of(scenario.get("objects", ()))
    pod: Pod = read(scenario["pod"], Pod)
    nodes = cluster.cache.table
    kinds = {kind: len(found) for kind, found in cluster.objects.items()} | cluster.unread
    why = unjudged(pod, nodes=nodes, missing=missing_plugins(registry), kinds=kinds)
    if why:
        return {"id": identity, "unsupported": why}

    profiles = build_profiles(config, registry, OfflineHandle(nodes, listers=cluster.listers))
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    if name not in profiles:
        raise ScenarioError(f"pod {pod.key}: spec.schedulerName: no profile {name!r}")
    finder = NodeFinder(nodes, select=smallest_name(nodes))
    decision = finder.find(
        profiles[name],
        PodInfo(pod),
        state=CycleState(),
        nominated=cluster.nominated,
        look_at_all=True,
    )
    return {"id": identity} | describe(decision, nodes)


def configuration(scenario: Mapping[str, Any], registry: Registry) -> KubeSchedulerConfiguration:
    """Return the scenario's configuration, which looks at all nodes; the default if it has none.

    Raises ConfigError.
    """
    models = args_models(registry)
    written = scenario.get("config")
    config = (
        default_configuration(models)
        if written is None
        else from_object(written, source=f"scenario {scenario.get('id')}", args_models=models)
    )
    profiles = tuple(
        profile.model_copy(update={"percentage_of_nodes_to_score": ALL_NODES})
        for profile in config.profiles
    )
    return config.model_copy(update={"profiles": profiles})


def describe(decision: Decision, nodes: NodeTable) -> dict[str, Any]:
    """Put a decision into the words of the recordings (conformance/FORMAT.md)."""
    outcome = decision.pre_filter
    refused = outcome.status
    rejected = decision.status is not None and decision.status.is_rejected
    error = decision.status if decision.status and decision.status.code is Code.ERROR else None
    answer: dict[str, Any] = {
        "prefilter": {
            "code": (refused.code if refused else Code.SUCCESS).label,
            "plugin": refused.plugin if refused else "",
            "reasons": list(refused.reasons) if refused else [],
            "nodes": None if outcome.node_names is None or refused else sorted(outcome.node_names),
        },
        "nodes": {} if refused else _verdicts(decision, nodes),
        "scores": _scores(decision, nodes),
        "best": sorted(nodes.names(decision.best)) if decision.scores else [],
        "fitError": decision.message if rejected else "",
    }
    if decision.nominated_used:
        answer["nominatedUsed"] = True
    if error is not None:
        answer["error"] = error.message
    return answer


def _verdicts(decision: Decision, nodes: NodeTable) -> dict[str, Any]:
    return {name: _verdict(decision.verdict_on(nodes, row)) for name, row in nodes.row_of.items()}


def _verdict(status: Status | None) -> dict[str, Any]:
    if status is None:
        return {"feasible": True}
    verdict: dict[str, Any] = {"feasible": False, "code": status.code.label}
    if status.plugin:
        verdict["plugin"] = status.plugin
    return verdict | {"reasons": sorted(status.reasons)}


def _scores(decision: Decision, nodes: NodeTable) -> dict[str, Any]:
    scores = decision.scores
    if scores is None:
        return {}
    columns = {plugin: np.asarray(column).tolist() for plugin, column in scores.weighted.items()}
    return {
        nodes.name(int(row)): {
            "plugins": {plugin: column[i] for plugin, column in columns.items()},
            "total": int(scores.total[i]),
        }
        for i, row in enumerate(scores.rows.tolist())
    }
