"""Proposals, as JSON has them."""

import msgspec

from berth.insight.certificate.certificate import Certificate


class ResponseModel(msgspec.Struct, frozen=True, rename="camel"):
    """camelCase in JSON."""


class Eviction(ResponseModel, frozen=True):
    """A pod that is to be evicted, and what becomes of it."""

    pod: str
    """``namespace/name``."""
    uid: str
    node: str
    priority: int
    controller: str
    """``Kind/name`` of who makes another pod in its place."""
    goes_to: str
    """The node that the scheduler gives to that pod."""
    why: str
    """Why it goes there, in the words of ``berth explain``."""
    or_to: tuple[str, ...] = ()
    """Other nodes with the same total: chance decides between them."""


class Placement(ResponseModel, frozen=True):
    """A pod that was pending, and gets a node."""

    pod: str
    node: str
    why: str


class Round(ResponseModel, frozen=True):
    """Evictions that budgets allow at the same time, and the pods that have a node after them.

    The next round begins when the pods that were made in the place of these are ready.
    """

    evictions: tuple[Eviction, ...]
    placements: tuple[Placement, ...] = ()


class Step(ResponseModel, frozen=True):
    """One goal that is reached: a pod that fits, a node that becomes empty, a constraint kept."""

    goal: str
    cordon: str = ""
    """The node that has to be cordoned, so that no pod comes back to it; empty: none."""
    uncordon: bool = False
    """Whether it is uncordoned when all pods of the step are made again elsewhere. If not, it is
    cordoned before the first eviction of all steps, until the last."""
    rounds: tuple[Round, ...] = ()
    also_cordoned: tuple[str, ...] = ()
    """Other nodes that are cordoned and uncordoned with the first."""


class Unmet(ResponseModel, frozen=True):
    """A goal that cannot be reached, and why."""

    goal: str
    why: str


class Proposal(ResponseModel, frozen=True):
    """What to do, in this order, and what cannot be done."""

    steps: tuple[Step, ...] = ()
    unmet: tuple[Unmet, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    """How far this is from the best, if that was asked for."""

    @property
    def evictions(self) -> list[Eviction]:
        return [
            eviction
            for step in self.steps
            for round_ in step.rounds
            for eviction in round_.evictions
        ]

    @property
    def placements(self) -> list[Placement]:
        return [
            placement
            for step in self.steps
            for round_ in step.rounds
            for placement in round_.placements
        ]

    @property
    def emptied(self) -> list[str]:
        """The nodes that become empty, or are."""
        return [step.cordon for step in self.steps if step.cordon and not step.uncordon]
