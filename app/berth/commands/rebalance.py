"""``berth rebalance``: which pods to evict for pods that fit, empty nodes, or less skew."""

import argparse
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from berth import log
from berth.assembly.listed_snapshot import list_cluster
from berth.assembly.running_scheduler import usual_kubeconfig
from berth.client.connect import connect
from berth.clock import RealClock
from berth.config.decode import document
from berth.event_loop import in_loop
from berth.profile.build import Registry
from berth.rebalance.apply import Applying
from berth.rebalance.proposal import Proposal
from berth.rebalance.propose import Goals, propose
from berth.rebalance.text import lines
from berth.settings.configuration import known_plugins
from berth.terminal import INTERRUPTED, CommandError, UsageError, say, say_json
from berth.whatif.snapshot import Snapshot, load

REACHED, NOT_REACHED = 0, 1
"""The exit statuses of a proposal."""
MOST_PROPOSALS = 100
"""Of one --apply: another is made when chance decided otherwise than the one before."""


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    goals = _goals(given)
    registry = known_plugins(given).registry
    kubeconfig = given.kubeconfig or usual_kubeconfig(given.context)
    found = _propose(given, kubeconfig, goals, registry)
    if not given.apply:
        return NOT_REACHED if found.unmet else REACHED
    for _ in range(MOST_PROPOSALS):
        if _apply(found, kubeconfig or "", given):
            return NOT_REACHED if found.unmet else REACHED
        found = _propose(given, kubeconfig, goals, registry)
    raise CommandError(f"not done after {MOST_PROPOSALS} proposals")


def _propose(
    given: argparse.Namespace, kubeconfig: str | None, goals: Goals, registry: Registry
) -> Proposal:
    """Propose, and show it."""
    snapshot = _snapshot(given, kubeconfig)
    if given.config is not None:
        snapshot = replace(snapshot, config=_configuration(given.config))
    found = propose(snapshot, goals, registry)
    if given.output == "json":
        say_json(msgspec.json.encode(found).decode())
    else:
        for line in lines(found):
            say(line)
    return found


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


def _configuration(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    return document(text, source=str(path)).value


def _apply(proposal: Proposal, kubeconfig: str, given: argparse.Namespace) -> bool:
    """Return whether all is done; if not, the rest has to be proposed anew."""
    tell = (lambda _line: None) if given.output == "json" else say

    async def applying() -> int:
        client = await connect(kubeconfig=kubeconfig, context=given.context)
        try:
            doing = Applying(client, clock=RealClock(), tell=tell, timeout=given.timeout)
            return int(await doing.apply(proposal))
        finally:
            await client.close()

    done = in_loop(applying())
    if done == INTERRUPTED:
        raise KeyboardInterrupt
    return bool(done)
