"""``berth explain``: a pod or a group of a running scheduler or a snapshot, or recordings."""

import argparse
import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from berth.cli.settings.configuration import known_plugins
from berth.cli.settings.running_scheduler import scheduler
from berth.insight.explain.explanation import Explanation, WorkloadExplanation
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.groups.tables import render_group
from berth.insight.explain.tables import render
from berth.insight.explain.workload import POD, POD_GROUP, Workload
from berth.insight.offline.explain import explain
from berth.insight.offline.files import answer_all, opened, scenarios
from berth.insight.offline.reasons import reasons
from berth.insight.offline.scenario import ScenarioError
from berth.insight.whatif.reasons import explain_pod, explain_pod_group
from berth.insight.whatif.snapshot import load
from berth.kube.objects.pod_group import GroupKey
from berth.runtime import log
from berth.runtime.errors import UserError
from berth.runtime.tables import show
from berth.runtime.terminal import say, say_json
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.framework.explanation import counted
from berth.service.scheduler_client import (
    RunningScheduler,
    ask_about_pod,
    ask_about_pod_group,
    ask_about_workload,
)

PIPE_WIDTH = 200
"""Columns of a table that goes to no terminal."""


class ExplainError(UserError):
    """There is no answer; the message says why."""


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    if given.target is not None:
        registry = known_plugins(given).registry
        problems = answer_all(given.source, given.target, lambda found: explain(found, registry))
        if problems:
            raise ExplainError("\n".join(problems))
        return 0
    as_json = given.output == "json"
    if given.asked is None:
        _tell_recorded(given, as_json=as_json)
    elif given.source is not None:
        _tell_of_snapshot(given, *given.asked, as_json=as_json)
    elif given.service is not None:
        asyncio.run(_tell_of_service(given, *given.asked, as_json=as_json))
    else:
        _tell_of_scheduler(scheduler(given), given.nodes, *given.asked, as_json=as_json)
    return 0


def _tell_of_snapshot(
    given: argparse.Namespace, namespace: str, kind: str, name: str, *, as_json: bool
) -> None:
    snapshot, limit = load(given.source), _limit(given)
    registry = known_plugins(given).registry
    with _placed(str(given.source)):
        if kind == POD_GROUP:
            asked = GroupKey(namespace, name)
            group = explain_pod_group(snapshot, asked, registry, limit=limit)
            _tell_pod_group(group, as_json=as_json)
        else:
            found = explain_pod(snapshot, f"{namespace}/{name}", registry, limit=limit)
            _tell(found, as_json=as_json)


async def _tell_of_service(
    given: argparse.Namespace, namespace: str, kind: str, name: str, *, as_json: bool
) -> None:
    from berth.cli.settings.scheduler_behind import scheduler_behind  # here: it takes 0.1 s to load

    async with scheduler_behind(given) as asked:
        await asyncio.to_thread(
            _tell_of_scheduler, asked, given.nodes, namespace, kind, name, as_json=as_json
        )


def _tell_of_scheduler(
    asked: RunningScheduler, nodes: str, namespace: str, kind: str, name: str, *, as_json: bool
) -> None:
    if kind == POD:
        _tell(ask_about_pod(asked, f"{namespace}/{name}", nodes=nodes), as_json=as_json)
    elif kind == POD_GROUP:
        group = ask_about_pod_group(asked, namespace, name, nodes=nodes)
        _tell_pod_group(group, as_json=as_json)
    else:
        workload = ask_about_workload(asked, namespace, Workload(kind, name), nodes=nodes)
        _tell_workload(workload, as_json=as_json)


def _limit(given: argparse.Namespace) -> int | None:
    return None if given.nodes == "all" else int(given.nodes)


def _tell(explanation: Explanation, *, as_json: bool) -> None:
    if as_json:
        say_json(explanation.model_dump_json(by_alias=True))
    else:
        _print(explanation)


def _tell_pod_group(found: PodGroupExplanation, *, as_json: bool) -> None:
    if as_json:
        say_json(found.model_dump_json(by_alias=True))
        return
    say(found.summary)
    say("")
    show(render_group(found), pipe_width=PIPE_WIDTH)


def _tell_workload(found: WorkloadExplanation, *, as_json: bool) -> None:
    if as_json:
        say_json(found.model_dump_json(by_alias=True))
        return
    if found.why_missing:
        say(found.why_missing)
    if found.num_pods and not found.num_pending:
        where = f"{found.workload} in namespace {found.namespace}"
        pods = counted(found.num_pods, "pod")
        say(f"{where}: no pod is pending, {pods} {'has' if found.num_pods == 1 else 'have'} a node")
    elif found.why_missing and found.num_pods:
        say("")
    for number, explanation in enumerate(found.pods):
        if number:
            say("")
        _print(explanation)
    if found.num_left_out:
        more = counted(found.num_left_out, "more pending pod")
        say(f"and {more} of {found.workload}, unlike those above")


def _print(explanation: Explanation) -> None:
    """Print the sentence as one line, however long: it is there to be copied."""
    say(explanation.summary)
    say("")
    show(render(explanation), pipe_width=PIPE_WIDTH)


def _tell_recorded(given: argparse.Namespace, *, as_json: bool) -> None:
    limit, count = _limit(given), 0
    registry = known_plugins(given).registry
    with opened(given.source, "rt") as lines:
        for where, scenario in scenarios(given.source, lines):
            identity = scenario.get("id")
            if given.id is not None and identity != given.id:
                continue
            with _placed(where):
                found = reasons(scenario, registry, limit=limit)
            if as_json:
                answer = {"unsupported": found} if isinstance(found, str) else _plain(found)
                say_json(json.dumps({"id": identity, **answer}, ensure_ascii=False))
            else:
                if count:
                    say("")
                say(f"scenario  {identity}")
                if isinstance(found, str):
                    say(f"not supported: {found}")
                else:
                    _print(found)
            count += 1
    if given.id is not None and not count:
        raise ExplainError(f"{given.source}: no scenario has id {given.id!r}")


def _plain(explanation: Explanation) -> dict[str, Any]:
    return explanation.model_dump(mode="json", by_alias=True)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Say of a mistake in a scenario where it is."""
    try:
        yield
    except (ScenarioError, ConfigError) as exc:
        raise ExplainError(f"{where}: {exc}") from exc
