"""Tests of plugins: builders of objects, one plugin alone, or the whole scheduler.

Objects are dicts as in manifests: :func:`node`, :func:`pod` and :func:`manifests` make them.

- :func:`run_filter` and :func:`run_score` call one plugin on a table of nodes.
- :func:`schedule` places pods with all plugins; :func:`explain` tells what each says of each node.

All of that happens in memory: nothing is written, and time stands still.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np

from berth.insight.explain.explanation import Evaluation
from berth.insight.offline.reasons import reasons
from berth.insight.offline.scenario import Scenario, read
from berth.insight.offline.simulate import simulate
from berth.kube import documents
from berth.kube.objects.pod import Pod
from berth.scheduler.config.defaults import read_args
from berth.scheduler.config.types import API_VERSION, KIND
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EXTENSION_POINTS,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    ScorePlugin,
)
from berth.scheduler.framework.listers import with_kinds
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.results import eligible_rows
from berth.service.plugin_sources import KnownPlugins
from berth_plugins.priority_sort import PrioritySort

__all__ = [
    "Evaluation",
    "Object",
    "Placement",
    "PluginFailedError",
    "configuration",
    "explain",
    "manifests",
    "node",
    "pod",
    "rejections",
    "run_filter",
    "run_score",
    "schedule",
    "scores",
]

Object = dict[str, Any]
"""An API object, as JSON gives it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What became of one pod."""

    node: str | None
    """Where it goes; None: nowhere."""
    message: str = ""
    """Why it goes nowhere, as the FailedScheduling event tells it."""


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Object:
    """Return a ready node of that size."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [*taints]},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods)}},
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str | None = None,
    memory: str | None = None,
    labels: Mapping[str, str] | None = None,
    node: str = "",
    **spec: Any,
) -> Object:
    """Return a pod with one container that requests *cpu* and *memory*, running on *node* if any.

    *spec* are further fields of its spec, spelled as in manifests: ``nodeSelector={...}``.
    """
    requests = {"cpu": cpu, "memory": memory}
    container = {
        "name": "main",
        "resources": {"requests": {name: amount for name, amount in requests.items() if amount}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "labels": {**(labels or {})},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [container],
            **({"nodeName": node} if node else {}),
            **spec,
        },
    }


def manifests(text: str) -> list[Object]:
    """Return the objects of a YAML text, indented or not, which may have several documents."""
    return [document for document in documents.load_all(dedent(text)) if document]


def configuration(
    *plugins: type[Plugin],
    args: Mapping[str, Mapping[str, Any]] | None = None,
    weights: Mapping[str, int] | None = None,
) -> Object:
    """Return a configuration with *plugins* after the default ones.

    *args* and *weights* are by plugin name, also of plugins that are there by default.
    """
    weights = weights or {}
    enabled = [{"name": p.NAME, "weight": weights.get(p.NAME, 1)} for p in plugins]
    configured = [{"name": name, "args": dict(given)} for name, given in (args or {}).items()]
    profile = {"plugins": {"multiPoint": {"enabled": enabled}}, "pluginConfig": configured}
    return {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}


def schedule(
    pods: Iterable[Object],
    *,
    objects: Iterable[Object],
    plugins: Sequence[type[Plugin]] = (),
    config: Object | None = None,
) -> dict[str, Placement]:
    """Place *pods* in their order on the cluster of *objects*, each with those before it in place.

    By ``namespace/name``. Of equally good nodes the smallest name is taken; nobody is preempted.
    *config* is by default that of *plugins* without args. Raises ConfigError and ScenarioError.
    """
    told = simulate(
        {"id": "test", "pods": [*pods], "objects": [*objects], "config": _config(plugins, config)},
        _registry(plugins),
    )
    messages = {**told.get("fitErrors", {}), **told.get("errors", {})}
    return {
        key: Placement(where, messages.get(key, "")) for key, where in told["assignments"].items()
    }


def explain(
    pod: Object,
    *,
    objects: Iterable[Object],
    plugins: Sequence[type[Plugin]] = (),
    config: Object | None = None,
) -> Evaluation:
    """Evaluate one pod as ``berth explain`` does: reasons by node, scores by node and plugin.

    Otherwise as :func:`schedule`.
    """
    told = reasons(
        {"id": "test", "pod": pod, "objects": [*objects], "config": _config(plugins, config)},
        _registry(plugins),
        limit=None,
    )
    assert not isinstance(told, str), told
    assert told.evaluation is not None, "a pod that waits is evaluated"
    return told.evaluation


def scores(evaluation: Evaluation, plugin: str) -> dict[str, int]:
    """Return what *plugin* gave each node that fits, normalised to 0..100."""
    return {
        verdict.node: verdict.score.plugins[plugin].normalized
        for verdict in evaluation.nodes
        if verdict.score is not None and plugin in verdict.score.plugins
    }


def rejections(evaluation: Evaluation, plugin: str) -> dict[str, tuple[str, ...]]:
    """Return the reasons by node that *plugin* ruled out."""
    return {v.node: v.reasons for v in evaluation.nodes if not v.fits and v.plugin == plugin}


class PluginFailedError(Exception):
    """The plugin answered with an error."""


def run_filter(
    plugin: type[PreFilterPlugin | FilterPlugin],
    pod: Object,
    *,
    objects: Iterable[Object],
    args: Mapping[str, Any] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Return by node why *plugin* rejects it for *pod*; no reasons: the node passes.

    Runs PreFilter first, if the plugin has it; what that rejects counts for all nodes. *objects*
    are nodes, the pods that run on them, and whatever else the plugin looks up; *args* is the
    block in the configuration. Raises PluginFailedError, ScenarioError, and pydantic's
    ValidationError for *args*.
    """
    cycle = _cycle(plugin, pod, objects, args)
    outcome = cycle.profile.run_pre_filter(cycle.state, cycle.pod, cycle.nodes)
    if outcome.status is not None:
        return dict.fromkeys(cycle.nodes.row_of, _reasons(outcome.status))
    cycle.state.feasible, absent = eligible_rows(outcome, cycle.nodes)
    eligible, diagnosis = cycle.state.feasible.copy(), Diagnosis(len(cycle.nodes))
    cycle.profile.run_filters(cycle.state, cycle.pod, cycle.nodes, diagnosis)
    return {
        name: _reasons(diagnosis.status_of(row) if eligible[row] else absent)
        for name, row in cycle.nodes.row_of.items()
    }


def run_score(
    plugin: type[ScorePlugin],
    pod: Object,
    *,
    objects: Iterable[Object],
    args: Mapping[str, Any] | None = None,
    normalized: bool = True,
) -> dict[str, int]:
    """Return the score that *plugin* gives each node for *pod*; without *normalized*, the raw one.

    Runs PreFilter and PreScore first, if the plugin has them; a plugin that skips scoring gives
    none. Otherwise as :func:`run_filter`; nobody filters the nodes.
    """
    cycle = _cycle(plugin, pod, objects, args)
    outcome = cycle.profile.run_pre_filter(cycle.state, cycle.pod, cycle.nodes)
    _reasons(outcome.status)
    rows = np.flatnonzero(cycle.nodes.exists)
    found = cycle.profile.run_scores(cycle.state, cycle.pod, cycle.nodes, rows)
    if isinstance(found, Status):
        raise PluginFailedError(found.message)
    column = (found.weighted if normalized else found.raw).get(plugin.NAME)
    if column is None:
        return {}
    return dict(zip(cycle.nodes.names(rows.tolist()), column.tolist(), strict=True))


class _Cycle(NamedTuple):
    """One plugin about to be asked about one pod."""

    profile: Profile
    state: CycleState
    pod: PodInfo
    nodes: NodeTable


def _cycle(
    plugin: type[Plugin],
    pod: Object,
    objects: Iterable[Object],
    args: Mapping[str, Any] | None,
) -> _Cycle:
    cluster = Scenario.of(objects, listers=with_kinds(plugin.READS))
    asked, nodes = PodInfo(read(pod, Pod)), cluster.cache.table
    pods = {**cluster.pods, asked.key: asked.pod}
    handle = Handle(nodes, listers=cluster.listers, pod=pods.get)
    made = plugin(None if plugin.ARGS is None else read_args(args or {}, plugin.ARGS), handle)
    points: dict[str, list[Plugin]] = {
        point: [made] for point, kind in EXTENSION_POINTS.items() if isinstance(made, kind)
    }
    points.setdefault("queue_sort", [PrioritySort()])
    profile = Profile("test", points, weights={plugin.NAME: 1})
    return _Cycle(profile, CycleState(nodes.exists.copy()), asked, nodes)


def _reasons(status: Status | None) -> tuple[str, ...]:
    if status is None:
        return ()
    if status.code is Code.ERROR:
        raise PluginFailedError(status.message)
    return status.reasons


def _config(plugins: Sequence[type[Plugin]], config: Object | None) -> Object:
    return configuration(*plugins) if config is None else config


def _registry(plugins: Iterable[type[Plugin]]) -> dict[str, type[Plugin]]:
    known = KnownPlugins().with_plugins((kind, kind.__qualname__) for kind in plugins)
    return dict(known.registry)
