"""Binding cycles of a replica that shares the cluster: others bind to their own nodes."""

from typing import Any

from berth.scheduler.binding import Binding, Stage
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.framework.status import Status
from berth.scheduler.reservation import Reservation
from berth.scheduler.shards.offers import Offers


class ShardedBindingCycle(BindingCycle):
    """Offers a pod to the writer of its node if that is another; the writer does all the rest.

    The room stays reserved here until the pod is bound or refused, so that the next decision minds
    it. PreBind and Bind are for the writer, who has reserved what they write.
    """

    def __init__(self, *, offers: Offers, **parts: Any) -> None:
        super().__init__(**parts)
        self._offers = offers

    async def run(self, binding: Binding) -> None:
        """Bind a pod, or have another replica do it."""
        try:
            await super().run(binding)
        finally:
            self._offers.pods.discard(binding.pod.uid)

    async def steps(self, binding: Binding) -> Status | None:
        """Run the steps from Permit to Bind, or wait for the other replica's."""
        if binding.pod.uid not in self._offers.pods:
            return await super().steps(binding)
        if binding.reservation.waiting is not None:
            status = await self._wait_on_permit(binding.reservation.waiting)
            if status is not None:
                return status
        self._queue.done(binding.pod.uid)
        binding.stage = Stage.BIND
        return await self._offers.make(binding.pod)

    def _bound(self, reservation: Reservation) -> None:
        """Tell of a bound pod, unless another replica has bound it and does."""
        if reservation.assumed.uid not in self._offers.pods:
            super()._bound(reservation)
