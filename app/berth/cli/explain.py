"""``berth explain``: a pod or a group of a running scheduler, a snapshot or a recording."""

import argparse
import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, known_plugins
from berth.cli.flags.looking_back import add_looking_back_flags, check_looking_back
from berth.cli.flags.running_scheduler import (
    add_scheduler_flags,
    add_service_flag,
    check,
    config_flags,
    scheduler,
)
from berth.cli.flags.versions import add_emulated_version
from berth.insight.explain.workload import (
    COMPOSITE,
    GROUPS,
    POD,
    POD_GROUP,
    WORKLOADS,
    Workload,
    kind_named,
)
from berth.runtime import log
from berth.runtime.errors import UserError
from berth.runtime.terminal import DOCUMENTS, program, say, say_document
from berth.scheduler.config.errors import ConfigError

if TYPE_CHECKING:
    from berth.insight.explain.explanation import Explanation, WorkloadExplanation
    from berth.insight.explain.groups.explanation import PodGroupExplanation
    from berth.service.scheduler_client import RunningScheduler


NODES_TOLD: Final = 10
DEFAULT_NAMESPACE: Final = "default"
PIPE_WIDTH: Final = 200
"""Columns of a table that goes to no terminal."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse *argv*; ``asked`` is the namespace, kind and name, None for a file of scenarios."""
    parser = _parser()
    given = parser.parse_args(argv)
    check(parser, given)
    if given.service and given.source:
        parser.error("--service and -f exclude each other")
    check_looking_back(parser, given)
    if given.recording and given.source:
        parser.error("--recording and -f exclude each other")
    if (given.pod is None) == (given.source is None) or (given.pod_there and not given.source):
        parser.error("name a pod, or a file with -f")
    if given.pod_there and (given.target or given.id):
        parser.error("--pod cannot be combined with -o and --id: the file is a snapshot")
    if given.namespace is not None and given.source is not None and given.pod_there is None:
        parser.error("-n requires a pod: scenarios contain their namespaces")
    if given.source is None and (given.target or given.id):
        parser.error("-o and --id require -f")
    if given.source is None and given.emulated_version:
        parser.error("--emulated-version requires -f: a running scheduler has its own")
    if given.target is not None and (given.id or given.output):
        parser.error(
            "-o writes all decisions as JSON lines; it cannot be combined with --id and --output"
        )
    given.asked = None
    if given.pod_there is not None:
        given.asked = _asked(parser, given.pod_there, given.namespace)
        if given.asked[1] not in (POD, *GROUPS):
            parser.error(
                f"--pod {given.pod_there}: a snapshot explains pods and pod groups, not workloads"
            )
    elif given.source is None:
        given.asked = _asked(parser, given.pod, given.namespace)
        if given.recording and given.asked[1] not in (POD, POD_GROUP):
            parser.error(f"{given.pod}: a recording explains pods and PodGroups only")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("explain"), allow_abbrev=False)
    parser.add_argument(
        "pod", nargs="?", metavar="[NAMESPACE/]POD|KIND/NAME",
        help="a pod; or pod/NAME; or podgroup/NAME; or compositepodgroup/NAME; or deployment/NAME"
        " and so on: the pending pods of a Deployment, ReplicaSet, ReplicationController,"
        " StatefulSet, DaemonSet, Job or CronJob",
    )  # fmt: skip
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help=f"namespace of the pod, pod group or workload; default: {DEFAULT_NAMESPACE}",
    )
    running = parser.add_argument_group("a running scheduler")
    add_scheduler_flags(running)
    add_service_flag(running)
    add_plugin_flags(parser)
    add_looking_back_flags(
        parser.add_argument_group("a recording"), otherwise="just before the decision about the pod"
    )
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
    add_emulated_version(parser)
    parser.add_argument(
        "--output", choices=["table", *DOCUMENTS], help="output format; default: table"
    )
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
) -> tuple[str, str, str]:
    """Return the namespace, the kind and the name of the pod, the group or the workload *text*.

    As kubectl reads it, and NAMESPACE/POD besides: a kind goes before a namespace of that name.
    """
    first, slash, name = text.partition("/")
    if not slash:
        return namespace or DEFAULT_NAMESPACE, POD, text
    kind = kind_named(first)
    if kind is not None:
        return namespace or DEFAULT_NAMESPACE, kind, name
    if namespace not in (None, first):
        parser.error(
            f"{text}: {first} is neither the namespace of -n nor a kind that can be explained:"
            f" {', '.join((POD, *GROUPS, *WORKLOADS))}"
        )
    return first, POD, name


class ExplainError(UserError):
    """There is no answer; the message says why."""


def run(given: argparse.Namespace) -> int:
    log.setup(logging.CRITICAL if given.recording else logging.ERROR)  # those of then are no news
    output = given.output or "table"
    if given.target is not None:
        _answer_scenarios(given)
    elif given.asked is None:
        _tell_recorded(given, output=output)
    elif given.recording:
        asyncio.run(_tell_of_recording(given, *given.asked, output=output))
    elif given.source is not None:
        _tell_of_snapshot(given, *given.asked, output=output)
    elif given.service is not None:
        asyncio.run(_tell_of_service(given, *given.asked, output=output))
    else:
        _tell_of_scheduler(scheduler(given), given.nodes, *given.asked, output=output)
    return 0


def _answer_scenarios(given: argparse.Namespace) -> None:
    with importing():
        from berth.insight.offline.explain import explain
        from berth.insight.offline.files import answer_all
        from berth.scheduler.config.load import emulating

    registry = known_plugins(given).registry
    adjust = emulating(given.emulated_version)
    problems = answer_all(
        given.source, given.target, lambda found: explain(found, registry, adjust=adjust)
    )
    if problems:
        raise ExplainError("\n".join(problems))


def _tell_of_snapshot(
    given: argparse.Namespace, namespace: str, kind: str, name: str, *, output: str
) -> None:
    from berth.insight.whatif.reasons import explain_pod, explain_pod_group
    from berth.insight.whatif.snapshot import load
    from berth.kube.objects.pod_group import CompositeKey, GroupKey

    snapshot, limit = load(given.source).emulating(given.emulated_version), _limit(given)
    registry = known_plugins(given).registry
    with _placed(str(given.source)):
        if kind in GROUPS:
            asked = (CompositeKey if kind == COMPOSITE else GroupKey)(namespace, name)
            group = explain_pod_group(snapshot, asked, registry, limit=limit)
            _tell_pod_group(group, output=output)
        else:
            explanation = explain_pod(snapshot, f"{namespace}/{name}", registry, limit=limit)
            _tell(explanation, output=output)


async def _tell_of_recording(
    given: argparse.Namespace, namespace: str, kind: str, name: str, *, output: str
) -> None:
    from berth.insight.recording.looking_back import Asked, look_back, summary, tables
    from berth.insight.recording.runs import runs
    from berth.runtime.tables import show

    asked = Asked(namespace, name, kind == POD_GROUP, _limit(given))
    registry = known_plugins(given).registry
    told = await look_back(runs(given.recording), registry, asked, at=given.at)
    if output in DOCUMENTS:
        say_document(told.model_dump_json(by_alias=True), output)
        return
    say(summary(told))
    say("")
    show(tables(told), pipe_width=PIPE_WIDTH)


async def _tell_of_service(
    given: argparse.Namespace, namespace: str, kind: str, name: str, *, output: str
) -> None:
    from berth.kube.client.service_pods import ServicePort
    from berth.service.running_scheduler import scheduler_behind

    async with scheduler_behind(ServicePort(*given.service), config_flags(given)) as asked:
        await asyncio.to_thread(
            _tell_of_scheduler, asked, given.nodes, namespace, kind, name, output=output
        )


def _tell_of_scheduler(
    asked: "RunningScheduler", nodes: str, namespace: str, kind: str, name: str, *, output: str
) -> None:
    from berth.service.scheduler_client import (
        ask_about_pod,
        ask_about_pod_group,
        ask_about_workload,
    )

    if kind == POD:
        _tell(ask_about_pod(asked, f"{namespace}/{name}", nodes=nodes), output=output)
    elif kind in GROUPS:
        is_composite = kind == COMPOSITE
        group = ask_about_pod_group(asked, namespace, name, nodes=nodes, composite=is_composite)
        _tell_pod_group(group, output=output)
    else:
        workload = ask_about_workload(asked, namespace, Workload(kind, name), nodes=nodes)
        _tell_workload(workload, output=output)


def _limit(given: argparse.Namespace) -> int | None:
    return None if given.nodes == "all" else int(given.nodes)


def _tell(explanation: "Explanation", *, output: str) -> None:
    if output in DOCUMENTS:
        say_document(explanation.model_dump_json(by_alias=True), output)
    else:
        _print(explanation)


def _tell_pod_group(explanation: "PodGroupExplanation", *, output: str) -> None:
    from berth.insight.explain.groups.tables import render_group
    from berth.runtime.tables import show

    if output in DOCUMENTS:
        say_document(explanation.model_dump_json(by_alias=True), output)
        return
    say(explanation.summary)
    say("")
    show(render_group(explanation), pipe_width=PIPE_WIDTH)


def _tell_workload(found: "WorkloadExplanation", *, output: str) -> None:
    from berth.scheduler.framework.words import counted

    if output in DOCUMENTS:
        say_document(found.model_dump_json(by_alias=True), output)
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


def _print(explanation: "Explanation") -> None:
    """Print the sentence as one line, however long: it is there to be copied."""
    from berth.insight.explain.tables import render
    from berth.runtime.tables import show

    say(explanation.summary)
    say("")
    show(render(explanation), pipe_width=PIPE_WIDTH)


def _tell_recorded(given: argparse.Namespace, *, output: str) -> None:
    from berth.insight.offline.files import opened, scenarios
    from berth.insight.offline.reasons import reasons
    from berth.scheduler.config.load import emulating

    adjust = emulating(given.emulated_version)
    limit, count = _limit(given), 0
    registry = known_plugins(given).registry
    with opened(given.source, "rt") as lines:
        for where, scenario in scenarios(given.source, lines):
            identity = scenario.get("id")
            if given.id is not None and identity != given.id:
                continue
            with _placed(where):
                explained = reasons(scenario, registry, limit=limit, adjust=adjust)
            if output in DOCUMENTS:
                answer = {"unsupported": explained}
                if not isinstance(explained, str):
                    answer = explained.model_dump(mode="json", by_alias=True)
                say_document(json.dumps({"id": identity, **answer}, ensure_ascii=False), output)
            else:
                if count:
                    say("")
                say(f"scenario  {identity}")
                if isinstance(explained, str):
                    say(f"not supported: {explained}")
                else:
                    _print(explained)
            count += 1
    if given.id is not None and not count:
        raise ExplainError(f"{given.source}: no scenario has id {given.id!r}")


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Say of a mistake in a scenario where it is."""
    from berth.insight.offline.scenario import ScenarioError

    try:
        yield
    except (ScenarioError, ConfigError) as exc:
        raise ExplainError(f"{where}: {exc}") from exc
