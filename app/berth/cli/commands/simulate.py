"""``berth simulate``: what would be, on a snapshot or a cluster; and recorded sequences of pods."""

import argparse
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from berth.cli.settings.configuration import known_plugins
from berth.insight.offline.files import answer_all
from berth.insight.offline.simulate import simulate
from berth.insight.whatif.answer import Answer
from berth.insight.whatif.course import Course, each_second
from berth.insight.whatif.engine import answer
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot, load
from berth.kube import manifests
from berth.runtime import log
from berth.runtime.clock import RealClock
from berth.runtime.event_loop import in_loop
from berth.runtime.memory import collect_seldom
from berth.runtime.terminal import UsageError, note, say_json
from berth.scheduler.config.decode import document
from berth.scheduler.config.defaults import DEFAULT_SCHEDULER_NAME
from berth.scheduler.config.model_errors import model_problems
from berth.scheduler.config.plugin_references import replace_references
from berth.service.plugin_sources import KnownPlugins

FITS, DOES_NOT_FIT = 0, 1
"""The exit statuses of an answer."""
STDIN: Final = "-"
PIPE_WIDTH: Final = 200
"""Columns of a table that goes to no terminal."""


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    if given.source is not None:
        return _recorded(given)
    found = _ask(given, _question(given))
    if given.output == "json":
        say_json(found.model_dump_json(by_alias=True))
    else:
        _print(found)
    return FITS if found.fits else DOES_NOT_FIT


def _recorded(given: argparse.Namespace) -> int:
    registry = known_plugins(given).registry
    problems = answer_all(
        given.source, given.target, lambda found: simulate(found, registry, seed=given.seed)
    )
    if problems:
        raise UsageError("\n".join(problems))
    return 0


# The question.


def _question(given: argparse.Namespace) -> dict[str, Any]:
    """Return the question as the server takes it."""
    pods, templates = list[Any](), list[Any]()
    for manifest in _manifests(given.pod, namespace=given.namespace):
        if manifest["kind"] == "Pod":
            pods.append(manifest)
        else:
            templates.append({"manifest": manifest})
    for manifest in _manifests(given.template, namespace=given.namespace):
        counted = manifest["kind"] != "DaemonSet"
        templates.append({"manifest": manifest, "replicas": given.replicas if counted else None})
    templates += ({"like": name, "replicas": given.replicas} for name in given.like)
    asked: dict[str, Any] = {
        "pods": pods,
        "templates": templates,
        "includePending": not given.no_pending,
        "removeNodes": _nodes(given.remove_node, given.remove_node_selector),
        "cordonNodes": _nodes(given.cordon_node, given.cordon_node_selector),
        "removePods": {"names": given.remove_pod},
        "preemption": given.preemption,
    }
    if given.find_removable is not None or given.find_removable_selector:
        names = [given.find_removable] if given.find_removable else []
        asked["findRemovable"] = _nodes(names, given.find_removable_selector)
    if given.repack:
        asked["repack"] = True
    if given.add_nodes is not None:
        asked["addNodes"] = [_node_type(given.add_nodes) | {"count": given.count or 1}]
    if given.find_nodes is not None:
        asked["findNodes"] = _node_type(given.find_nodes)
    if given.seed is not None:
        asked["seed"] = given.seed
    asked |= {
        "preset": given.preset,
        "profile": given.profile,
        "weights": _weights(given.weight),
        "comparePreset": given.compare_preset,
        "compareProfile": given.compare_profile,
        "compareWeights": _weights(given.compare_weight),
    }
    for name, path in (("config", given.config), ("compareConfig", given.compare_config)):
        if path is not None:
            asked[name] = _configuration(path)
    return asked


def _manifests(paths: Iterable[Path], *, namespace: str) -> Iterator[Any]:
    """Yield the objects of files; those that name no namespace are in *namespace*."""
    for path in paths:
        if str(path) == STDIN:
            found = manifests.parse(sys.stdin.read(), source="stdin")
        else:
            found = manifests.read(path)
        for each in found:
            meta = each.setdefault("metadata", {}) if namespace else None
            if isinstance(meta, dict) and not meta.get("namespace"):
                meta["namespace"] = namespace
            yield each


def _nodes(names: Iterable[str], selector: str) -> dict[str, Any]:
    """Return a choice of nodes; a name may be several with commas between them."""
    apart = [name.strip() for each in names for name in each.split(",")]
    return {"names": [name for name in apart if name], "selector": selector}


def _weights(given: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    weights: dict[str, dict[str, int]] = {}
    for profile, plugin, weight in given:
        weights.setdefault(profile or DEFAULT_SCHEDULER_NAME, {})[plugin] = weight
    return weights


def _node_type(type_: str) -> dict[str, Any]:
    path = Path(type_)
    if not path.exists():
        return {"like": type_}
    found = list(manifests.read(path))
    if len(found) != 1:
        raise UsageError(f"{path}: one Node is needed, got {len(found)} objects")
    return {"manifest": found[0]}


def _configuration(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    return document(text, source=str(path)).value


# Who answers.


def _ask(given: argparse.Namespace, asked: dict[str, Any]) -> Answer:
    if given.server is not None or (given.snapshot is None and given.kubeconfig is None):
        return _ask_scheduler(given, asked)
    registry = _plugins(given, asked).registry
    try:
        question = Question.model_validate(asked)
    except ValidationError as exc:
        raise UsageError("\n".join(model_problems(exc))) from exc
    collect_seldom()
    if given.snapshot is not None:
        snapshot = load(given.snapshot)
    else:
        snapshot = _listed(given.kubeconfig, given.context)
    return answer(
        question, snapshot, registry, course=Course(tell=each_second(_progress, RealClock()))
    )


def _listed(kubeconfig: str, context: str | None) -> Snapshot:
    from berth.service.listed_snapshot import list_cluster

    found: list[Snapshot] = []

    async def listing() -> int:
        found.append(await list_cluster(kubeconfig, context=context))
        return 0

    in_loop(listing())
    return found[0]


def _ask_scheduler(given: argparse.Namespace, asked: dict[str, Any]) -> Answer:
    # Only then: what speaks HTTP takes as long to import as a small question to answer.
    from berth.cli.settings.running_scheduler import scheduler
    from berth.service.scheduler_client import AskError, ask_to_simulate

    try:
        return ask_to_simulate(scheduler(given), asked, _progress)
    except AskError as exc:
        if given.server is not None:
            raise
        raise UsageError(f"{exc}; otherwise pass --server, --snapshot or --kubeconfig") from exc


def _progress(told: Mapping[str, Any]) -> None:
    """Say how far it is, to people only."""
    if sys.stderr.isatty():
        what = "nodes tried" if told.get("stage") == "findRemovable" else "pods decided"
        note(f"{told.get('stage')}: {told.get('done')} of {told.get('of')} {what}")


def _plugins(given: argparse.Namespace, asked: dict[str, Any]) -> KnownPlugins:
    """Return the plugins that are to be known; in what is *asked* they get their own names."""
    known = known_plugins(given)
    for name, path in (("config", given.config), ("compareConfig", given.compare_config)):
        if path is not None:
            known = known.referred_in(asked[name], source=str(path))
            replace_references(asked[name], known.aliases)
    return known


def _print(found: Answer) -> None:
    # Only then: JSON should not wait for it.
    from berth.insight.whatif.tables import render
    from berth.runtime.tables import show

    show(render(found), pipe_width=PIPE_WIDTH)
