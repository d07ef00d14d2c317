"""All controllers, connected: the one place where informers, controllers and loops meet."""

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from typing import Final

from berth.cluster.access.signing_key import SigningKey
from berth.cluster.controllers import (
    certificate_approving,
    certificate_signing,
    cluster_role_aggregation,
    cron_job,
    daemon_set,
    deployment,
    disruption,
    endpoint_slice,
    endpoints,
    ephemeral_volume,
    flow_schema,
    garbage_collector,
    horizontal_pod_autoscaler,
    job,
    namespace,
    node_lifecycle,
    persistent_volume,
    pod_garbage_collector,
    pod_group_protection,
    policy_type_checking,
    replica_set,
    resource_claim,
    resource_quota,
    root_ca,
    service_account,
    service_account_token,
    stale_disruption,
    stateful_set,
    taint_eviction,
    ttl_after_finished,
    volume_protection,
)
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import Controller
from berth.cluster.controllers.informers import METADATA_ONLY, SharedInformers
from berth.cluster.controllers.loop import Loop
from berth.cluster.controllers.options import DEFAULTS, ControllerOptions
from berth.cluster.events.recorder import EventBroadcaster
from berth.cluster.kinds.registry import Registry
from berth.kube.client.api import AcceptingApi
from berth.runtime.certificates import KeyPair
from berth.runtime.clock import Clock
from berth.runtime.tasks import forever

CONCURRENCY: Final = 48
"""Requests under way at a time, of all controllers together."""

CONTROLLERS: Final[Sequence[Callable[[ControllerContext], Controller | None]]] = (
    deployment.new_controller,
    replica_set.new_controller,
    replica_set.new_replication_controller,
    stateful_set.new_controller,
    daemon_set.new_controller,
    job.new_controller,
    cron_job.new_controller,
    horizontal_pod_autoscaler.new_controller,
    endpoints.new_controller,
    endpoint_slice.new_controller,
    ttl_after_finished.new_controller,
    disruption.new_controller,
    node_lifecycle.new_controller,
    stale_disruption.new_controller,
    taint_eviction.new_controller,
    pod_garbage_collector.new_controller,
    persistent_volume.new_controller,
    resource_claim.new_controller,
    ephemeral_volume.new_controller,
    garbage_collector.new_controller,
    namespace.new_controller,
    service_account.new_controller,
    service_account_token.new_controller,
    root_ca.new_controller,
    resource_quota.new_controller,
    pod_group_protection.new_controller,
    volume_protection.new_claim_controller,
    volume_protection.new_volume_controller,
    cluster_role_aggregation.new_controller,
    certificate_approving.new_controller,
    certificate_signing.new_controller,
    policy_type_checking.new_controller,
    flow_schema.new_controller,
)
"""Makes each controller, and asks for the tables that it reads. None: there is nothing to do."""


class Controllers:
    """The controllers of a cluster. :meth:`run` ends only by cancellation.

    They decide nothing before they know everything: loops start when all watches are synced.
    """

    def __init__(
        self,
        client: AcceptingApi,
        registry: Registry,
        *,
        clock: Clock,
        rng: random.Random,
        certificate: str = "",
        signing_key: SigningKey | None = None,
        options: ControllerOptions = DEFAULTS,
        authority: KeyPair | None = None,
        features: Collection[str] = (),
    ) -> None:
        """*certificate* is what clients are to trust, in PEM; empty: there is none to publish.

        *signing_key* is that of the API server for service account tokens; None: Secrets get none.
        *authority* signs certificates; None: none are signed. *features* are the feature gates that
        are on.
        """
        self._informers = SharedInformers(
            client, client.accepting(METADATA_ONLY), registry, clock=clock, rng=rng
        )
        self._events = EventBroadcaster(client, clock=clock)
        context = ControllerContext(
            self._informers,
            registry,
            clock,
            rng,
            certificate,
            signing_key,
            self._events,
            options,
            authority,
            features,
        )
        slots = asyncio.Semaphore(CONCURRENCY)
        made = [new_controller(context) for new_controller in CONTROLLERS]
        self._loops = [
            Loop(controller, client, clock=clock, slots=slots)
            for controller in made
            if controller is not None
        ]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name, run in (
                ("controllers watch", self._informers.run),
                ("controllers events", self._events.run),
            ):
                group.create_task(forever(name, run), name=name)
            await self._informers.synced()
            for loop in self._loops:
                name = f"controller {loop.name}"
                group.create_task(forever(name, loop.run), name=name)
