"""``berth rebalance``: which pods to evict for pods that fit, empty nodes, or less skew."""

import argparse
import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from berth.cli.settings.configuration import known_plugins
from berth.insight.whatif.snapshot import Snapshot, load
from berth.kube.client.connect import connect
from berth.kube.client.errors import ApiError
from berth.runtime import log
from berth.runtime.clock import Clock, RealClock, rfc3339
from berth.runtime.event_loop import in_loop
from berth.runtime.terminal import CommandError, UsageError, say, say_json
from berth.scheduler.config.decode import document
from berth.scheduler.profile.build import Registry
from berth.service.listed_snapshot import list_cluster, snapshot_of
from berth.service.running_scheduler import usual_kubeconfig
from berth.tools.rebalance.cordons import uncordon_left_behind
from berth.tools.rebalance.patient_api import PatientApi
from berth.tools.rebalance.proposal import Proposal
from berth.tools.rebalance.propose import Goals, propose
from berth.tools.rebalance.rebalancing import Rebalancing
from berth.tools.rebalance.text import lines

REACHED, NOT_REACHED = 0, 1
"""The exit statuses of a proposal."""


class _NotWantedError(Exception):
    """The command has been interrupted."""


def run(given: argparse.Namespace) -> int:
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
    found = propose(_configured(given, _snapshot(given, kubeconfig)), goals, registry)
    _show(given, found)
    return NOT_REACHED if found.unmet else REACHED


async def _with_api(
    given: argparse.Namespace,
    kubeconfig: str | None,
    work: Callable[[PatientApi], Awaitable[int]],
) -> int:
    if kubeconfig is None:
        raise UsageError("no cluster: pass --kubeconfig")
    client = await connect(kubeconfig=kubeconfig, context=given.context)
    try:
        return await work(PatientApi(client, clock=RealClock(), timeout=given.timeout))
    except ApiError as exc:
        raise CommandError(f"{kubeconfig}: {exc}") from exc
    finally:
        await client.close()


async def _uncordon(api: PatientApi) -> int:
    """Uncordon what runs have left cordoned."""
    await uncordon_left_behind(api, say, lambda _run: True)
    return 0


async def _apply(
    given: argparse.Namespace, api: PatientApi, goals: Goals, registry: Registry
) -> int:
    tell = (lambda _line: None) if given.output == "json" else say
    clock = RealClock()

    async def proposed(uncordoned: Collection[str]) -> Proposal:
        snapshot = _configured(given, await snapshot_of(api, time=rfc3339(clock.now())))
        return await _in_thread(snapshot, goals, registry, uncordoned)

    rebalancing = Rebalancing(
        api,
        proposed,
        run=_name_of_run(clock),
        clock=clock,
        tell=tell,
        show=lambda found: _show(given, found),
        timeout=given.timeout,
        keeps_cordons=given.keep_cordoned,
    )
    found = await rebalancing.run(is_left=has_ended)
    return NOT_REACHED if found.unmet else REACHED


async def _in_thread(
    snapshot: Snapshot, goals: Goals, registry: Registry, uncordoned: Collection[str]
) -> Proposal:
    """Propose while signals are heard; the search ends when it is not wanted any more."""
    is_wanted = True

    def look() -> None:
        if not is_wanted:
            raise _NotWantedError

    try:
        return await asyncio.to_thread(
            propose, snapshot, goals, registry, uncordoned=uncordoned, before_trial=look
        )
    finally:
        is_wanted = False


def _name_of_run(clock: Clock) -> str:
    return f"{socket.gethostname()}/{os.getpid()}/{rfc3339(clock.now())}"


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


def _show(given: argparse.Namespace, found: Proposal) -> None:
    if given.output == "json":
        say_json(msgspec.json.encode(found).decode())
    else:
        for line in lines(found):
            say(line)


def _goals(given: argparse.Namespace) -> Goals:
    nodes = given.empty_nodes
    return Goals(
        for_pods=tuple(key if "/" in key else f"default/{key}" for key in given.for_pod),
        empty_nodes=() if isinstance(nodes, int) else nodes,
        num_empty_nodes=nodes if isinstance(nodes, int) else 0,
        mends_skew=given.mend_skew,
    )


def _snapshot(given: argparse.Namespace, kubeconfig: str | None) -> Snapshot:
    if given.snapshot is not None:
        return load(given.snapshot)
    if kubeconfig is None:
        raise UsageError("no cluster: pass --kubeconfig or --snapshot")
    path, found = kubeconfig, list[Snapshot]()

    async def listing() -> int:
        found.append(await list_cluster(path, context=given.context))
        return 0

    in_loop(listing())
    return found[0]


def _configured(given: argparse.Namespace, snapshot: Snapshot) -> Snapshot:
    if given.config is None:
        return snapshot
    return replace(snapshot, config=_configuration(given.config))


def _configuration(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    return document(text, source=str(path)).value
