"""``berth explain``: a pod or a group of a running scheduler or a snapshot, or recordings."""

import argparse
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from berth import log
from berth.config.errors import ConfigError
from berth.errors import UserError
from berth.explain.explanation import Explanation, WorkloadExplanation
from berth.explain.groups.explanation import PodGroupExplanation
from berth.explain.groups.tables import render_group
from berth.explain.tables import render
from berth.explain.workload import POD, POD_GROUP, Workload, kind_named
from berth.flags import running_scheduler
from berth.flags.configuration import add_plugin_flags, known_plugins
from berth.objects.pod_group import GroupKey
from berth.offline.explain import explain
from berth.offline.files import answer_all, opened, scenarios
from berth.offline.reasons import reasons
from berth.offline.scenario import ScenarioError
from berth.scheduler_client import ask_about_pod, ask_about_pod_group, ask_about_workload
from berth.tables import show
from berth.terminal import program, say, say_json
from berth.whatif.reasons import explain_pod, explain_pod_group
from berth.whatif.snapshot import load

NODES_TOLD = 10
DEFAULT_NAMESPACE = "default"
PIPE_WIDTH = 200
"""Columns of a table that goes to no terminal."""


class ExplainError(UserError):
    """There is no answer; the message says why."""


def main(argv: Sequence[str]) -> int:
    log.setup(logging.ERROR)
    parser = _parser()
    given = parser.parse_args(argv)
    if (given.pod is None) == (given.source is None) or (given.pod_there and not given.source):
        parser.error("name a pod, or a file with -f")
    if given.pod_there and (given.target or given.id):
        parser.error("--pod cannot be combined with -o and --id: the file is a snapshot")
    if given.namespace is not None and given.source is not None and given.pod_there is None:
        parser.error("-n requires a pod: scenarios contain their namespaces")
    if given.source is None and (given.target or given.id):
        parser.error("-o and --id require -f")
    if given.target is not None and (given.id or given.output):
        parser.error(
            "-o writes all decisions as JSON lines; it cannot be combined with --id and --output"
        )
    if given.target is not None:
        registry = known_plugins(given).registry
        problems = answer_all(given.source, given.target, lambda found: explain(found, registry))
        if problems:
            raise ExplainError("\n".join(problems))
        return 0
    as_json = given.output == "json"
    if given.pod_there is not None:
        namespace, asked = _asked(parser, given.pod_there, given.namespace)
        if isinstance(asked, Workload):
            parser.error(
                f"--pod {given.pod_there}: a snapshot explains pods and pod groups, not workloads"
            )
        snapshot, limit = load(given.source), _limit(given)
        registry = known_plugins(given).registry
        with _placed(str(given.source)):
            if isinstance(asked, GroupKey):
                group = explain_pod_group(snapshot, asked, registry, limit=limit)
                _tell_pod_group(group, as_json=as_json)
            else:
                found = explain_pod(snapshot, f"{namespace}/{asked}", registry, limit=limit)
                _tell(found, as_json=as_json)
    elif given.source is not None:
        _tell_recorded(given, as_json=as_json)
    else:
        namespace, asked = _asked(parser, given.pod, given.namespace)
        scheduler = running_scheduler.scheduler(given)
        if isinstance(asked, str):
            found = ask_about_pod(scheduler, f"{namespace}/{asked}", nodes=given.nodes)
            _tell(found, as_json=as_json)
        elif isinstance(asked, GroupKey):
            name, nodes = asked.name, given.nodes
            group = ask_about_pod_group(scheduler, namespace, name, nodes=nodes)
            _tell_pod_group(group, as_json=as_json)
        else:
            workload = ask_about_workload(scheduler, namespace, asked, nodes=given.nodes)
            _tell_workload(workload, as_json=as_json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("explain"), allow_abbrev=False)
    parser.add_argument(
        "pod", nargs="?", metavar="[NAMESPACE/]POD|KIND/NAME",
        help="a pod; or pod/NAME; or podgroup/NAME; or deployment/NAME and so on: the pending pods"
        " of a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job",
    )  # fmt: skip
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help=f"namespace of the pod, pod group or workload; default: {DEFAULT_NAMESPACE}",
    )
    running_scheduler.add_flags(parser)
    add_plugin_flags(parser)
    parser.add_argument(
        "-f", dest="source", type=Path, metavar="IN",
        help="read scenarios as JSON lines, or a snapshot with --pod, from this file; .gz is"
        " supported",
    )  # fmt: skip
    parser.add_argument(
        "--pod", dest="pod_there", metavar="[NAMESPACE/]POD|podgroup/NAME",
        help="explain this pod, or pod group, of a snapshot",
    )  # fmt: skip
    parser.add_argument(
        "-o", dest="target", type=Path, metavar="OUT",
        help="write the decisions for all scenarios to this file, as JSON lines",
    )  # fmt: skip
    parser.add_argument("--id", help="explain this scenario only")
    parser.add_argument("--output", choices=["table", "json"], help="output format; default: table")
    parser.add_argument(
        "--nodes", type=_number_or_all, default=str(NODES_TOLD), metavar="N|all",
        help="how many nodes to show, the best first; default %(default)s",
    )  # fmt: skip
    return parser


def _number_or_all(text: str) -> str:
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} must be a number or all")
    return text


def _asked(
    parser: argparse.ArgumentParser, text: str, namespace: str | None
) -> tuple[str, str | Workload | GroupKey]:
    """Return the namespace, and the name of the pod, the workload or the group of *text*.

    As kubectl reads it, and NAMESPACE/POD besides: a kind goes before a namespace of that name.
    """
    first, slash, name = text.partition("/")
    if not slash:
        return namespace or DEFAULT_NAMESPACE, text
    kind = kind_named(first)
    if kind == POD:
        return namespace or DEFAULT_NAMESPACE, name
    if kind == POD_GROUP:
        return namespace or DEFAULT_NAMESPACE, GroupKey(namespace or DEFAULT_NAMESPACE, name)
    if kind is not None:
        return namespace or DEFAULT_NAMESPACE, Workload(kind, name)
    if namespace not in (None, first):
        parser.error(f"{text} is in namespace {first}, -n says {namespace}")
    return first, name


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
    if not found.num_pending:
        where = f"{found.workload} in namespace {found.namespace}"
        say(f"{where}: no pod is pending, {found.num_pods} have a node")
    for number, explanation in enumerate(found.pods):
        if number:
            say("")
        _print(explanation)
    if found.num_left_out:
        say(
            f"and {found.num_left_out} more pending pods of {found.workload}, with other signatures"
        )


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
