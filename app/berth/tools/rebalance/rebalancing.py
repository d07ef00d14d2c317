"""Reaches a goal on a live cluster: proposes, evicts, and proposes anew, until it is reached."""

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from berth.kube.client.errors import ApiError
from berth.runtime.clock import Clock
from berth.tools.rebalance.apply import Applying
from berth.tools.rebalance.cordons import Cordons, uncordon_left_behind
from berth.tools.rebalance.patient_api import PatientApi, RebalanceStoppedError
from berth.tools.rebalance.proposal import Proposal

MOST_IN_VAIN: Final = 10
"""Proposals in a row after which no fewer evictions are left than before."""

Propose = Callable[[Collection[str]], Awaitable[Proposal]]
"""Proposes for the cluster as it is, as if the nodes of these names were not cordoned."""


class Rebalancing:
    """One run. However it ends, the nodes that it has cordoned are uncordoned."""

    def __init__(
        self,
        api: PatientApi,
        propose: Propose,
        *,
        run: str,
        clock: Clock,
        tell: Callable[[str], None],
        show: Callable[[Proposal], None],
        timeout: float,
        keeps_cordons: bool = False,
    ) -> None:
        """*run* names this run on the nodes that it cordons.

        *tell* hears of what is done, *show* of each proposal before it is carried out. If it
        *keeps_cordons*, nodes that have become empty stay cordoned.
        """
        self._api = api
        self._propose = propose
        self._tell = tell
        self._show = show
        self._keeps_cordons = keeps_cordons
        self._cordons = Cordons(api, run=run, tell=tell)
        self._applying = Applying(api, self._cordons, clock=clock, tell=tell, timeout=timeout)

    async def run(self, *, is_left: Callable[[str], bool] = lambda _run: False) -> Proposal:
        """Return the last proposal, in which nothing is to be done any more.

        Its unmet goals cannot be reached. Nodes that were cordoned by another run of which
        *is_left* is true, as it has ended without uncordoning them, are uncordoned first. Raises
        RebalanceStoppedError, and what the proposing raises.
        """
        try:
            await self._begin(is_left)
            return await self._until_reached()
        except ApiError as exc:
            raise RebalanceStoppedError(str(exc)) from exc
        finally:
            await self._cordons.lift()

    async def _begin(self, is_left: Callable[[str], bool]) -> None:
        others = await uncordon_left_behind(self._api, self._tell, is_left)
        for name, run in others.items():
            raise RebalanceStoppedError(
                f"{name} is cordoned by another rebalance, {run}: wait for its end or, if it has"
                " ended, undo its cordons with `berth rebalance --uncordon`"
            )

    async def _until_reached(self) -> Proposal:
        proposal = await self._propose(())
        self._show(proposal)
        fewest, in_vain = _to_do(proposal), 0
        while _to_do(proposal):
            await self._cordons.keep_only(proposal.emptied)
            await self._applying.carry_out(proposal)
            proposal = await self._propose(self._cordons.names)
            in_vain = 0 if _to_do(proposal) < fewest else in_vain + 1
            fewest = min(fewest, _to_do(proposal))
            if in_vain > MOST_IN_VAIN:
                raise RebalanceStoppedError(
                    f"after {self._applying.evictions} evictions the goal is no nearer: pods go"
                    " elsewhere than proposed; if the scheduler has a configuration of its own,"
                    " pass it with --config"
                )
            if _to_do(proposal):
                self._show(proposal)
        if self._keeps_cordons:
            for name in proposal.emptied:
                await self._cordons.cordon(name)
                await self._cordons.uncordon(name, keep=True)
        await self._cordons.keep_only(())
        for unmet in proposal.unmet:
            self._tell(f"cannot be reached: {unmet.goal}: {unmet.why}")
        if not proposal.unmet:
            count = self._applying.evictions
            self._tell(f"all goals are reached, with {count} eviction{'' if count == 1 else 's'}")
        return proposal


def _to_do(proposal: Proposal) -> int:
    return len(proposal.evictions) + len(proposal.placements)
