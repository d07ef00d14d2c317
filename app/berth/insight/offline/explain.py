"""One scenario in, one decision out, in the shape of the recordings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.insight.offline.scenario import Scenario, ScenarioError, read
from berth.kube.objects.pod import Pod
from berth.scheduler.config.defaults import DEFAULT_SCHEDULER_NAME
from berth.scheduler.config.feature_gates import features_of
from berth.scheduler.config.load import Adjust, as_is, default_configuration, from_object
from berth.scheduler.config.types import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
)
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.explanation import Records
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import with_kinds
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_reader import pod_reader
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.outcome import Failed, Outcome, Placed, Unschedulable
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.build import Registry, args_models, build_profiles, kinds_read
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.results import ScoreTable
from berth.scheduler.schedule_pod import evaluate_pod, smallest_name

ALL_NODES = 100
"""Recordings look at all nodes, whatever percentageOfNodesToScore says."""
PREEMPTION = "DefaultPreemption"


def explain(
    scenario: Mapping[str, Any], registry: Registry, *, adjust: Adjust = as_is
) -> dict[str, Any]:
    """Decide for ``scenario["pod"]`` and tell everything that was found.

    A sequence of pods gets ``{"id", "unsupported"}``: it is for ``berth simulate``. *adjust* may
    change the configuration of the scenario. Raises ScenarioError or ConfigError when the scenario
    is malformed.
    """
    identity = scenario.get("id")
    asked = question(scenario, registry, adjust)
    if isinstance(asked, str):
        return {"id": identity, "unsupported": asked}
    nodes = asked.nodes
    cycle = Cycle(asked.profile, asked.pod, nodes, asked.nominated)
    outcome = evaluate_pod(cycle, select=smallest_name(nodes))
    if isinstance(outcome, Unschedulable):
        outcome = run_post_filter_plugins(cycle, outcome)
    return {"id": identity} | describe(outcome, nodes) | findings(cycle, outcome)


@dataclass(frozen=True, slots=True)
class Question:
    """One pod, the cluster that it is to be placed in, and who decides."""

    pod: PodInfo
    profile: Profile
    nodes: NodeTable
    nominated: Mapping[str, Sequence[PodInfo]]


def question(
    scenario: Mapping[str, Any], registry: Registry, adjust: Adjust = as_is
) -> Question | str:
    """Read what a scenario asks; or say that it asks something else.

    Raises ScenarioError or ConfigError when the scenario is malformed.
    """
    if "pod" not in scenario:
        return "a sequence of pods; explain takes one pod"
    config = configuration(scenario, registry, adjust)
    read_pod = pod_reader(features_of(config))
    cluster = Scenario.of(
        scenario.get("objects", ()), listers=with_kinds(kinds_read(registry)), read_pod=read_pod
    )
    pod: Pod = read(scenario["pod"], Pod)
    if read_pod is not None:
        pod = read_pod(pod)
    nodes = cluster.cache.table
    pods = {**cluster.pods, pod.key: pod}
    handle = Handle(nodes, listers=cluster.listers, pod=pods.get)
    profiles = build_profiles(config, registry, handle)
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    if name not in profiles:
        raise ScenarioError(f"pod {pod.key}: spec.schedulerName: no profile {name!r}")
    return Question(PodInfo(pod), profiles[name], nodes, cluster.nominated)


def configuration(
    scenario: Mapping[str, Any], registry: Registry, adjust: Adjust = as_is
) -> KubeSchedulerConfiguration:
    """Return the scenario's configuration, which looks at all nodes; the default if it has none.

    Preemption looks at all that it could help on, too. *adjust* changes it before its defaults are
    filled in. Raises ConfigError.
    """
    models = args_models(registry)
    written = scenario.get("config")
    config = (
        default_configuration(models, adjust=adjust)
        if written is None
        else from_object(
            written, source=f"scenario {scenario.get('id')}", args_models=models, adjust=adjust
        )
    )
    profiles = tuple(map(_looking_at_all, config.profiles))
    return config.model_copy(update={"profiles": profiles})


def _looking_at_all(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    args = {**profile.args(PREEMPTION), "minCandidateNodesPercentage": ALL_NODES}
    others = tuple(config for config in profile.plugin_config if config.name != PREEMPTION)
    return profile.model_copy(
        update={
            "percentage_of_nodes_to_score": ALL_NODES,
            "plugin_config": (*others, PluginConfig(name=PREEMPTION, args=args)),
        }
    )


def describe(outcome: Outcome, nodes: NodeTable) -> dict[str, Any]:
    """Put an outcome into the words of the recordings (conformance/FORMAT.md)."""
    feasible_nodes, placed = outcome.found, outcome if isinstance(outcome, Placed) else None
    scores = placed.scores if placed else None
    pre_filter, refused = feasible_nodes.pre_filter, feasible_nodes.pre_filter.status
    answer: dict[str, Any] = {
        "prefilter": {
            "code": (refused.code if refused else Code.SUCCESS).label,
            "plugin": refused.plugin if refused else "",
            "reasons": list(refused.reasons) if refused else [],
            "nodes": None
            if pre_filter.node_names is None or refused
            else sorted(pre_filter.node_names),
        },
        "nodes": {} if refused else _verdicts(feasible_nodes, nodes),
        "scores": _scores(scores, nodes) if scores else {},
        "best": sorted(nodes.names(scores.rows[placed.best])) if placed and scores else [],
        "fitError": outcome.message if isinstance(outcome, Unschedulable) else "",
        "preemption": _preemption(outcome, nodes) if isinstance(outcome, Unschedulable) else None,
    }
    if feasible_nodes.is_nominated:
        answer["nominatedUsed"] = True
    if isinstance(outcome, Failed):
        answer["error"] = outcome.message
    return answer


def _verdicts(feasible_nodes: FeasibleNodes, nodes: NodeTable) -> dict[str, Any]:
    return {name: _verdict(feasible_nodes.status_of(row)) for name, row in nodes.row_of.items()}


def _verdict(status: Status | None) -> dict[str, Any]:
    if status is None:
        return {"feasible": True}
    verdict: dict[str, Any] = {"feasible": False, "code": status.code.label}
    if status.plugin:
        verdict["plugin"] = status.plugin
    return verdict | {"reasons": sorted(status.reasons)}


def _preemption(outcome: Unschedulable, nodes: NodeTable) -> dict[str, Any] | None:
    """Tell what PostFilter found; of nodes that are equally good the recordings name the first."""
    result = outcome.post_filter
    if result is None:
        return None
    preemption = result.preemption
    equals = sorted(preemption.equals, key=lambda best: best.node) if preemption is not None else []
    best = equals[0] if equals else None
    answer: dict[str, Any] = {
        "code": (result.status.code if result.status else Code.SUCCESS).label,
        "nominatedNode": best.node if best else result.nominated_node or "",
        "victims": _keys(best) if best else [],
        "pdbViolations": best.pdb_violations if best else 0,
        "message": outcome.post_filter_message,
    }
    if len(equals) > 1:
        answer["ties"] = [candidate.node for candidate in equals]
    if preemption is not None and preemption.candidates:
        answer["candidates"] = {
            candidate.node: {
                "victims": _keys(candidate),
                "pdbViolations": candidate.pdb_violations,
            }
            for candidate in preemption.candidates
        }
    if preemption is not None:
        rows = np.flatnonzero(preemption.rejected.rejected(nodes)).tolist()
        if rows:
            rejected = preemption.rejected
            answer["rejected"] = {nodes.name(r): _verdict(rejected.status_of(r)) for r in rows}
    return answer


def _keys(candidate: Candidate) -> list[str]:
    return sorted(victim.key for victim in candidate.victims)


def findings(cycle: Cycle, outcome: Outcome) -> dict[str, Any]:
    """Return what plugins record of nodes that fit, such as devices on offer."""
    if not isinstance(outcome, Placed):
        return {}
    records: dict[str, Any] = {}
    for plugin in cycle.profile.plugins:
        if isinstance(plugin, Records):
            records |= plugin.record(cycle.state, cycle.nodes, outcome.found.feasible)
    return records


def _scores(scores: ScoreTable, nodes: NodeTable) -> dict[str, Any]:
    columns = {plugin: np.asarray(column).tolist() for plugin, column in scores.weighted.items()}
    return {
        nodes.name(int(row)): {
            "plugins": {plugin: column[i] for plugin, column in columns.items()},
            "total": int(scores.total[i]),
        }
        for i, row in enumerate(scores.rows.tolist())
    }
