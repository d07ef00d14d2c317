"""The extender server, put together from the parts of a running service."""

import asyncio
import random
from collections.abc import Callable, Mapping

from berth.kube.client.api import FenceableApi
from berth.kube.client.writes.lanes import Limits, WriteLanes
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.runtime.tasks import forever
from berth.scheduler.api_writer import ApiWriter
from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.service.extender_server.bindings import Bindings
from berth.service.extender_server.verbs import Verbs

_LIMITS = Limits(workers=16, status=1, event=1)
"""Only binds are written; a client of kube-scheduler's waits for each of them."""


class ExtenderService:
    """Answers other schedulers from the caches of this one. Whoever serves them owns :meth:`run`.

    It binds with *client*, whether or not this process leads: it is the other scheduler that
    decides.
    """

    def __init__(
        self,
        client: FenceableApi,
        *,
        profiles: Mapping[str, Profile],
        cache: Cache,
        queue: SchedulingQueue,
        pod_lookup: Callable[[str], Pod | None],
        listers: Listers,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._lanes = WriteLanes(clock=clock, limits=_LIMITS)
        self._bindings = Bindings(
            cache,
            queue=queue,
            pod_lookup=pod_lookup,
            client=client,
            binder=ApiWriter(
                client,
                self._lanes,
                recorders={},
                pod_lookup=pod_lookup,
                clock=clock,
                rng=rng,
            ),
            clock=clock,
        )
        nominator = queue.nominator
        self.verbs = Verbs(
            profiles,
            cache=cache,
            bindings=self._bindings,
            budgets=DisruptionBudgets(listers.pod_disruption_budgets),
            nominated=nominator.nominated_pods,
        )

    async def run(self) -> None:
        """Write the bindings and see that they are confirmed, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for name, run in (
                ("extender bindings", self._lanes.run),
                ("extender confirmations", self._bindings.run),
            ):
                tasks.create_task(forever(name, run), name=name)
