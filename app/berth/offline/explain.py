"""One scenario in, one decision out, in the shape of the recordings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.config.defaults import DEFAULT_SCHEDULER_NAME
from berth.config.load import default_configuration, from_object
from berth.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile, PluginConfig
from berth.framework.cycle_state import CycleState
from berth.framework.explanation import Records
from berth.framework.handle import Handle
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.candidate import Candidate
from berth.framework.status import Code, Status
from berth.objects.pod import Pod
from berth.offline.scenario import Scenario, ScenarioError, read, smallest_name
from berth.profile.build import Registry, args_models, build_profiles
from berth.profile.profile import Profile
from berth.scheduler.decision import Decision
from berth.scheduler.find_node import NodeFinder

ALL_NODES = 100
"""Recordings look at all nodes, whatever percentageOfNodesToScore says."""
PREEMPTION = "DefaultPreemption"


def explain(scenario: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
    """Decide for ``scenario["pod"]`` and tell everything that was found.

    A sequence of pods gets ``{"id", "unsupported"}``: it is for ``berth simulate``. Raises
    ScenarioError or ConfigError when the scenario is malformed.
    """
    identity = scenario.get("id")
    asked = question(scenario, registry)
    if isinstance(asked, str):
        return {"id": identity, "unsupported": asked}
    nodes, nominated = asked.nodes, asked.nominated
    finder = NodeFinder(nodes, select=smallest_name(nodes))
    state = CycleState()
    decision = finder.find(
        asked.profile, asked.pod, state=state, nominated=nominated, look_at_all=True
    )
    if decision.status is not None:
        finder.run_post_filter_plugins(asked.profile, decision, state=state, nominated=nominated)
    return (
        {"id": identity}
        | describe(decision, nodes)
        | findings(asked.profile, state, decision, nodes)
    )


@dataclass(frozen=True, slots=True)
class Question:
    """One pod, the cluster that it is to be placed in, and who decides."""

    pod: PodInfo
    profile: Profile
    nodes: NodeTable
    nominated: Mapping[str, Sequence[PodInfo]]


def question(scenario: Mapping[str, Any], registry: Registry) -> Question | str:
    """Read what a scenario asks; or say that it asks something else.

    Raises ScenarioError or ConfigError when the scenario is malformed.
    """
    if "pod" not in scenario:
        return "a sequence of pods; explain takes one pod"
    config = configuration(scenario, registry)
    cluster = Scenario.of(scenario.get("objects", ()))
    pod: Pod = read(scenario["pod"], Pod)
    nodes = cluster.cache.table
    pods = {**cluster.pods, pod.key: pod}
    handle = Handle(nodes, listers=cluster.listers, pod=pods.get)
    profiles = build_profiles(config, registry, handle)
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    if name not in profiles:
        raise ScenarioError(f"pod {pod.key}: spec.schedulerName: no profile {name!r}")
    return Question(PodInfo(pod), profiles[name], nodes, cluster.nominated)


def configuration(scenario: Mapping[str, Any], registry: Registry) -> KubeSchedulerConfiguration:
    """Return the scenario's configuration, which looks at all nodes; the default if it has none.

    Preemption looks at all that it could help on, too. Raises ConfigError.
    """
    models = args_models(registry)
    written = scenario.get("config")
    config = (
        default_configuration(models)
        if written is None
        else from_object(written, source=f"scenario {scenario.get('id')}", args_models=models)
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
        "preemption": _preemption(decision, nodes),
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


def _preemption(decision: Decision, nodes: NodeTable) -> dict[str, Any] | None:
    """Tell what PostFilter found; of nodes that are equally good the recordings name the first."""
    result = decision.post_filter
    if result is None:
        return None
    found = result.preemption
    equals = sorted(found.equals, key=lambda best: best.node) if found is not None else []
    best = equals[0] if equals else None
    answer: dict[str, Any] = {
        "code": (result.status.code if result.status else Code.SUCCESS).label,
        "nominatedNode": best.node if best else result.nominated_node or "",
        "victims": _keys(best) if best else [],
        "pdbViolations": best.pdb_violations if best else 0,
        "message": decision.post_filter_message,
    }
    if len(equals) > 1:
        answer["ties"] = [candidate.node for candidate in equals]
    if found is not None and found.candidates:
        answer["candidates"] = {
            candidate.node: {
                "victims": _keys(candidate),
                "pdbViolations": candidate.pdb_violations,
            }
            for candidate in found.candidates
        }
    if found is not None:
        rows = np.flatnonzero(found.rejected.rejected(nodes)).tolist()
        if rows:
            rejected = found.rejected
            answer["rejected"] = {nodes.name(r): _verdict(rejected.status_of(r)) for r in rows}
    return answer


def _keys(candidate: Candidate) -> list[str]:
    return sorted(victim.key for victim in candidate.victims)


def findings(
    profile: Profile, state: CycleState, decision: Decision, nodes: NodeTable
) -> dict[str, Any]:
    """Return what plugins record of nodes that fit, such as devices on offer."""
    if decision.status is not None:
        return {}
    found: dict[str, Any] = {}
    for plugin in profile.plugins:
        if isinstance(plugin, Records):
            found |= plugin.record(state, nodes, decision.feasible)
    return found


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
