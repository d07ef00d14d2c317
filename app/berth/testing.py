"""For tests of plugins by others: decide about pods and nodes without a cluster.

Objects are dicts as in manifests. Decisions are those of the scheduler: the same profiles, filters
and scores, on a cluster in memory where nothing is bound and time stands still. :func:`schedule`
tells where pods go, :func:`explain` what each plugin says about each node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from berth import documents
from berth.config.types import API_VERSION, KIND
from berth.explain.explanation import Judgement
from berth.framework.interface import Plugin
from berth.offline.reasons import reasons
from berth.offline.simulate import simulate
from berth.plugin_sources import KnownPlugins

Object = dict[str, Any]


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
) -> Judgement:
    """Judge one pod as ``berth explain`` does: reasons by node, scores by node and plugin.

    Otherwise as :func:`schedule`.
    """
    told = reasons(
        {"id": "test", "pod": pod, "objects": [*objects], "config": _config(plugins, config)},
        _registry(plugins),
        limit=None,
    )
    assert not isinstance(told, str), told
    assert told.judgement is not None, "a pod that waits is judged"
    return told.judgement


def scores(judgement: Judgement, plugin: str) -> dict[str, int]:
    """Return what *plugin* gave each node that fits, normalised to 0..100."""
    return {
        verdict.node: verdict.score.plugins[plugin].normalized
        for verdict in judgement.nodes
        if verdict.score is not None and plugin in verdict.score.plugins
    }


def rejections(judgement: Judgement, plugin: str) -> dict[str, tuple[str, ...]]:
    """Return the reasons by node that *plugin* ruled out."""
    return {v.node: v.reasons for v in judgement.nodes if not v.fits and v.plugin == plugin}


def _config(plugins: Sequence[type[Plugin]], config: Object | None) -> Object:
    return configuration(*plugins) if config is None else config


def _registry(plugins: Iterable[type[Plugin]]) -> dict[str, type[Plugin]]:
    known = KnownPlugins().with_plugins((kind, kind.__qualname__) for kind in plugins)
    return dict(known.registry)
