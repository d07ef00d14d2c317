"""Binding cycles of a replica that shares the cluster: others bind to their own nodes."""

import logging
from typing import Any

from berth.kube.client.errors import ApiError, log_failure
from berth.scheduler.binding import Binding
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.framework.status import Status
from berth.scheduler.shards.offers import Offers

log = logging.getLogger(__name__)


class ShardedBindingCycle(BindingCycle):
    """Offers a pod to the writer of its node if that is another, who does all that follows.

    The room is assumed here until the pod is bound or refused, so that the next decision minds it.
    """

    def __init__(self, *, offers: Offers, **parts: Any) -> None:
        super().__init__(**parts)
        self._offers = offers

    async def run(self, binding: Binding) -> None:
        """Bind a pod, or have another replica do it."""
        if binding.pod.uid not in self._offers.pods:
            await super().run(binding)
            return
        pod = binding.pod
        self._queue.done(pod.uid)
        status: Status | None = None
        with binding.reservation.undo as undo:
            try:
                status = await self._offers.make(pod)
            except ApiError as exc:
                log_failure(log, "offer failed", exc, {"pod": pod.key, "node": pod.node_name})
                status = Status.error(str(exc))
            finally:
                self._bindings.remove(binding)
                self._offers.pods.discard(pod.uid)
            if status is None:
                undo.pop_all()
        if status is not None:
            self._failed(binding, status)
