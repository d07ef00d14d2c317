"""``berth rebalance``: which pods to evict for pods that fit, empty nodes, or less skew."""

import argparse
import asyncio
import itertools
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, configuration_document, known_plugins
from berth.cli.flags.proof import add_proof_flags, limits
from berth.cli.flags.versions import add_emulated_version
from berth.kube.client.errors import ApiError
from berth.runtime import log
from berth.runtime.terminal import (
    DOCUMENTS,
    CommandError,
    Progress,
    UsageError,
    positive,
    program,
    say,
    say_document,
)

if TYPE_CHECKING:
    from berth.insight.certificate.problem import Limits
    from berth.insight.whatif.snapshot import Snapshot
    from berth.scheduler.profile.build import Registry
    from berth.tools.rebalance.patient_api import PatientApi
    from berth.tools.rebalance.proposal import Proposal
    from berth.tools.rebalance.propose import Goals

TIMEOUT: Final = 300
REACHED, NOT_REACHED = 0, 1
"""The exit statuses of a proposal."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(argv)
    if given.snapshot is not None and (given.kubeconfig or given.context):
        parser.error("--snapshot excludes --kubeconfig and --context")
    if given.snapshot is not None and given.apply:
        parser.error("--apply needs a cluster, not a snapshot")
    has_goal = given.for_pod or given.pending or given.empty_nodes or given.mend_skew
    if given.uncordon and (has_goal or given.apply or given.snapshot is not None):
        parser.error("--uncordon excludes goals, --apply and --snapshot")
    if given.keep_cordoned and not (given.apply and given.empty_nodes):
        parser.error("--keep-cordoned needs --empty-nodes and --apply")
    if not has_goal and not given.uncordon:
        parser.error("name a goal: --for-pod, --pending, --empty-nodes or --mend-skew")
    if given.max_evictions is not None and (not given.pending or given.apply):
        parser.error("--max-evictions needs --pending, and excludes --apply")
    provable = (given.for_pod, given.pending, isinstance(given.empty_nodes, int))
    if given.prove and sum(map(bool, provable)) != 1:
        parser.error("--prove needs one of --for-pod, --pending and --empty-nodes NUMBER")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("rebalance"),
        allow_abbrev=False,
        description="Propose which pods to evict. The exit status is 0 if all goals are reached, 1"
        " if some are not or if --apply stops, and 2 for an error. Pods without a controller, of"
        " DaemonSets, mirror pods and critical pods are never evicted, and no more at a time than"
        " their PodDisruptionBudgets allow.",
    )
    goals = parser.add_argument_group("goals")
    goals.add_argument(
        "--for-pod", action="append", default=[], metavar="[NAMESPACE/]POD",
        help="make this pending pod fit; can be repeated",
    )  # fmt: skip
    goals.add_argument(
        "--pending", action="store_true",
        help="make as many pending pods fit as possible, those of higher priority first",
    )  # fmt: skip
    goals.add_argument(
        "--max-evictions", type=positive, metavar="K",
        help="with --pending: evict so many pods at most",
    )  # fmt: skip
    goals.add_argument(
        "--empty-nodes", type=_number_or_names, metavar="N|NAME,NAME", default=(),
        help="empty so many nodes, the cheapest, or the nodes of these names",
    )  # fmt: skip
    goals.add_argument(
        "--mend-skew", action="store_true",
        help="move pods until the topology spread constraints of their workloads are kept",
    )  # fmt: skip
    add_proof_flags(goals, "with --for-pod, --pending or --empty-nodes NUMBER")
    where = parser.add_argument_group("the cluster")
    where.add_argument(
        "--snapshot", type=Path, metavar="FILE",
        help="read a snapshot, or a List from `kubectl get -o json`, from this file; .gz is"
        " supported",
    )  # fmt: skip
    where.add_argument(
        "--kubeconfig", metavar="FILE",
        help="list from this API server; default: $KUBECONFIG, or what berth up wrote",
    )  # fmt: skip
    where.add_argument(
        "--context", metavar="NAME",
        help="context of the kubeconfig to use; default: the current one",
    )  # fmt: skip
    where.add_argument(
        "--config", type=Path, metavar="FILE",
        help="the configuration of the scheduler; default: that of the snapshot, or the default",
    )  # fmt: skip
    add_emulated_version(where)
    add_plugin_flags(parser)
    parser.add_argument(
        "--apply", action="store_true",
        help="evict the pods, wait for ready ones between the rounds, and propose anew when"
        " something goes otherwise, until the goals are reached; then uncordon the nodes",
    )  # fmt: skip
    parser.add_argument(
        "--keep-cordoned", action="store_true",
        help="with --empty-nodes and --apply: leave the emptied nodes cordoned, to remove them",
    )  # fmt: skip
    parser.add_argument(
        "--uncordon", action="store_true",
        help="uncordon the nodes that an --apply which was killed has left cordoned, and exit",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=positive, default=TIMEOUT, metavar="SECONDS",
        help="how long --apply waits for each round, and for an API server that does not answer;"
        " default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        choices=["text", *DOCUMENTS, "name"],
        default="text",
        help="output format; name: the pods to evict, one per line",
    )
    return parser


def _number_or_names(text: str) -> int | tuple[str, ...]:
    if text.isdecimal():
        return positive(text)
    return tuple(filter(None, (name.strip() for name in text.split(","))))


class _NotWantedError(Exception):
    """The command has been interrupted."""


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.runtime.event_loop import in_loop
        from berth.service.running_scheduler import usual_kubeconfig
        from berth.tools.rebalance.propose import propose

    log.setup(logging.ERROR)
    kubeconfig = given.kubeconfig or usual_kubeconfig(given.context)
    if given.uncordon:
        return in_loop(_with_api(given, kubeconfig, _uncordon))
    goals = _goals(given)
    registry = known_plugins(given).registry
    if given.apply:
        return in_loop(
            _with_api(given, kubeconfig, lambda api: _apply(given, api, goals, registry))
        )
    snapshot = _configured(given, _snapshot(given, kubeconfig))
    proposal = propose(snapshot, goals, registry, before_trial=_progress(), proof=limits(given))
    _show(given, proposal)
    return NOT_REACHED if proposal.unmet else REACHED


def _progress() -> Callable[[], None]:
    """Return what is called before each trial, and tells people how many there were."""
    trials, progress = itertools.count(1), Progress(time.monotonic())
    return lambda: progress.tell(time.monotonic(), f"rebalance: trial {next(trials)}")


async def _with_api(
    given: argparse.Namespace,
    kubeconfig: str | None,
    work: "Callable[[PatientApi], Awaitable[int]]",
) -> int:
    from berth.kube.client.connect import connect
    from berth.runtime.clock import RealClock
    from berth.tools.rebalance.patient_api import PatientApi

    if kubeconfig is None:
        raise UsageError("no cluster: pass --kubeconfig")
    client = await connect(kubeconfig=kubeconfig, context=given.context)
    try:
        return await work(PatientApi(client, clock=RealClock(), timeout=given.timeout))
    except ApiError as exc:
        raise CommandError(f"{kubeconfig}: {exc}") from exc
    finally:
        await client.close()


async def _uncordon(api: "PatientApi") -> int:
    """Uncordon what runs have left cordoned."""
    from berth.tools.rebalance.cordons import uncordon_left_behind

    await uncordon_left_behind(api, say, lambda _run: True)
    return 0


async def _apply(
    given: argparse.Namespace, api: "PatientApi", goals: "Goals", registry: "Registry"
) -> int:
    from berth.runtime.clock import RealClock, rfc3339
    from berth.service.listed_snapshot import snapshot_of
    from berth.tools.rebalance.rebalancing import Rebalancing

    tell = (lambda _line: None) if given.output != "text" else say
    clock = RealClock()

    async def proposed(uncordoned: Collection[str]) -> "Proposal":
        snapshot = _configured(given, await snapshot_of(api, time=rfc3339(clock.now())))
        return await _in_thread(snapshot, goals, registry, uncordoned, limits(given))

    rebalancing = Rebalancing(
        api,
        proposed,
        run=f"{socket.gethostname()}/{os.getpid()}/{rfc3339(clock.now())}",
        clock=clock,
        tell=tell,
        show=lambda proposal: _show(given, proposal),
        timeout=given.timeout,
        keeps_cordons=given.keep_cordoned,
    )
    outcome = await rebalancing.run(is_left=has_ended)
    return NOT_REACHED if outcome.unmet else REACHED


async def _in_thread(
    snapshot: "Snapshot",
    goals: "Goals",
    registry: "Registry",
    uncordoned: Collection[str],
    proof: "Limits | None",
) -> "Proposal":
    """Propose while signals are heard; the search ends when it is not wanted any more."""
    from berth.tools.rebalance.propose import propose

    is_wanted = True

    def look() -> None:
        if not is_wanted:
            raise _NotWantedError

    try:
        return await asyncio.to_thread(
            propose,
            snapshot,
            goals,
            registry,
            uncordoned=uncordoned,
            before_trial=look,
            proof=proof,
        )
    finally:
        is_wanted = False


def has_ended(run: str) -> bool:
    """Return whether *run* was on this machine and its process is gone; of others nobody knows."""
    host, pid, _ = run.split("/", 2) if run.count("/") >= 2 else ("", "", "")
    if host != socket.gethostname() or not pid.isdecimal() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _show(given: argparse.Namespace, proposal: "Proposal") -> None:
    from berth.tools.rebalance.text import lines

    if given.output == "name":
        for eviction in proposal.evictions:
            say(eviction.pod)
    elif given.output in DOCUMENTS:
        say_document(msgspec.json.encode(proposal).decode(), given.output)
    else:
        for line in lines(proposal):
            say(line)


def _goals(given: argparse.Namespace) -> "Goals":
    from berth.tools.rebalance.propose import Goals

    nodes = given.empty_nodes
    return Goals(
        for_pods=tuple(key if "/" in key else f"default/{key}" for key in given.for_pod),
        empty_nodes=() if isinstance(nodes, int) else nodes,
        num_empty_nodes=nodes if isinstance(nodes, int) else 0,
        pending=given.pending,
        most_evictions=given.max_evictions,
        mends_skew=given.mend_skew,
    )


def _snapshot(given: argparse.Namespace, kubeconfig: str | None) -> "Snapshot":
    from berth.insight.whatif.snapshot import load
    from berth.service.listed_snapshot import list_cluster

    if given.snapshot is not None:
        return load(given.snapshot)
    if kubeconfig is None:
        raise UsageError("no cluster: pass --kubeconfig or --snapshot")
    return list_cluster(kubeconfig, context=given.context)


def _configured(given: argparse.Namespace, snapshot: "Snapshot") -> "Snapshot":
    if given.config is not None:
        snapshot = replace(snapshot, config=configuration_document(given.config))
    return snapshot.emulating(given.emulated_version)
