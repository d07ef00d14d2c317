"""A proposal for people."""

from collections.abc import Iterator

from berth.insight.certificate import certificate
from berth.tools.rebalance.proposal import Eviction, Proposal, Round, Step


def lines(proposal: Proposal) -> Iterator[str]:
    """Yield what is to be done, in its order, and then what cannot be reached."""
    if not proposal.steps and not proposal.unmet:
        yield "nothing to do"
    for step in proposal.steps:
        if step.cordon and not step.uncordon:
            yield f"cordon {step.cordon}"
    for step in proposal.steps:
        yield from _step(step)
    for unmet in proposal.unmet:
        yield f"cannot be reached: {unmet.goal}"
        yield f"  {unmet.why}"
    for proof in proposal.certificates:
        yield from certificate.lines(proof)


def evicting(eviction: Eviction) -> str:
    """Say who is evicted, and what comes of it."""
    return (
        f"evict {eviction.pod} ({eviction.controller}, priority {eviction.priority}) "
        f"from {eviction.node}"
    )


def _step(step: Step) -> Iterator[str]:
    count = sum(len(round_.evictions) for round_ in step.rounds)
    yield f"so that {step.goal}: {count} {'eviction' if count == 1 else 'evictions'}"
    if step.uncordon:
        names = ", ".join((step.cordon, *step.also_cordoned))
        yield f"  cordon {names} until these pods are elsewhere"
    for number, round_ in enumerate(step.rounds, 1):
        if len(step.rounds) > 1:
            yield f"  round {number} of {len(step.rounds)}"
        yield from _round(round_)


def _round(round_: Round) -> Iterator[str]:
    for eviction in round_.evictions:
        yield f"  {evicting(eviction)}"
        yield f"    it goes to {eviction.why}"
    for placement in round_.placements:
        yield f"  {placement.pod} goes to {placement.why}"
