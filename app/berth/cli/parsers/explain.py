"""The arguments of ``berth explain``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from berth.cli.flags import running_scheduler
from berth.cli.flags.configuration import add_plugin_flags
from berth.insight.explain.workload import POD, POD_GROUP, WORKLOADS, kind_named
from berth.runtime.terminal import program

NODES_TOLD: Final = 10
DEFAULT_NAMESPACE: Final = "default"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse *argv*; ``asked`` is the namespace, kind and name, None for a file of scenarios."""
    parser = _parser()
    given = parser.parse_args(argv)
    running_scheduler.check(parser, given)
    if given.service and given.source:
        parser.error("--service and -f exclude each other")
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
    given.asked = None
    if given.pod_there is not None:
        given.asked = _asked(parser, given.pod_there, given.namespace)
        if given.asked[1] not in (POD, POD_GROUP):
            parser.error(
                f"--pod {given.pod_there}: a snapshot explains pods and pod groups, not workloads"
            )
    elif given.source is None:
        given.asked = _asked(parser, given.pod, given.namespace)
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("explain"), allow_abbrev=False)
    parser.add_argument(
        "pod", nargs="?", metavar="[NAMESPACE/]POD|KIND/NAME",
        help="a pod; or pod/NAME; or podgroup/NAME; or deployment/NAME and so on: the pending pods"
        " of a Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job or"
        " CronJob",
    )  # fmt: skip
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help=f"namespace of the pod, pod group or workload; default: {DEFAULT_NAMESPACE}",
    )
    running = parser.add_argument_group("a running scheduler")
    running_scheduler.add_flags(running)
    running_scheduler.add_service_flag(running)
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
            f" {', '.join((POD, POD_GROUP, *WORKLOADS))}"
        )
    return first, POD, name
