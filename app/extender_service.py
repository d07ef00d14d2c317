"""The extender server, put together from the parts of a running service."""

import asyncio
import random
from collections.abc import Callable, Mapping

from fastapi import APIRouter
from prometheus_client import CollectorRegistry

from app.cache.cache import Cache
from app.client.api import Api
from app.client.lanes import Limits, WriteLanes
from app.clock import Clock
from app.extender_server.answers import Answers
from app.extender_server.bindings import Bindings
from app.framework.listers import Listers
from app.framework.preemption.disruption_budgets import DisruptionBudgets
from app.metrics.extender_server_metrics import ExtenderServerMetrics
from app.objects.pod import Pod
from app.profile.profile import Profile
from app.queue.nominator import Nominator
from app.scheduler.api_writer import ApiWriter
from app.server.extender_bodies import MAX_BODY_BYTES
from app.server.extender_endpoints import ExtenderEndpoints
from app.tasks import forever

_LIMITS = Limits(workers=16, status=1, event=1)
"""Only binds are written; a client of kube-scheduler's waits for each of them."""


class ExtenderService:
    """Answers other schedulers from the caches of this one. Whoever serves it owns :meth:`run`.

    It binds with *client*, whether or not this process leads: it is the other scheduler that
    decides.
    """

    def __init__(
        self,
        client: Api,
        *,
        profiles: Mapping[str, Profile],
        cache: Cache,
        nominator: Nominator,
        pod_lookup: Callable[[str], Pod | None],
        listers: Listers,
        is_ready: Callable[[], bool],
        registry: CollectorRegistry,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._lanes = WriteLanes(clock=clock, limits=_LIMITS)
        self._is_ready = is_ready
        self._registry = registry
        self._clock = clock
        self._bindings = Bindings(
            cache,
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
        self._answers = Answers(
            profiles,
            cache=cache,
            bindings=self._bindings,
            budgets=DisruptionBudgets(listers.pod_disruption_budgets),
            nominated=lambda: {node: nominator.nominated_pods(node) for node in nominator.nodes()},
        )

    def router(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> APIRouter:
        """Return the endpoints; to be asked for once, as it registers their metrics."""
        return ExtenderEndpoints(
            self._answers,
            is_ready=self._is_ready,
            metrics=ExtenderServerMetrics(self._registry),
            clock=self._clock,
            max_body_bytes=max_body_bytes,
        ).router()

    async def run(self) -> None:
        """Write the bindings and see that they are confirmed, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for name, run in (
                ("extender bindings", self._lanes.run),
                ("extender confirmations", self._bindings.run),
            ):
                tasks.create_task(forever(name, run), name=name)
