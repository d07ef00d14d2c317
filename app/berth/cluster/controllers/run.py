"""All controllers, connected: the one place where informers, controllers and loops meet."""

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

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
    endpoint_slice_mirroring,
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
from berth.cluster.data import read
from berth.cluster.events.recorder import EventBroadcaster
from berth.cluster.kinds.registry import Registry
from berth.kube.client.api import AcceptingApi
from berth.runtime.certificates import KeyPair
from berth.runtime.clock import Clock
from berth.runtime.tasks import forever

CONCURRENCY: Final = 48
"""Requests under way at a time, of all controllers together."""

NewController = Callable[[ControllerContext], Controller | None]
"""Makes a controller, and asks for the tables that it reads. None: there is nothing to do."""

CONTROLLERS: Final[Mapping[str, Sequence[NewController]]] = {
    "deployment-controller": (deployment.new_controller,),
    "replicaset-controller": (replica_set.new_controller,),
    "replicationcontroller-controller": (replica_set.new_replication_controller,),
    "statefulset-controller": (stateful_set.new_controller,),
    "daemonset-controller": (daemon_set.new_controller,),
    "job-controller": (job.new_controller,),
    "cronjob-controller": (cron_job.new_controller,),
    "horizontal-pod-autoscaler-controller": (horizontal_pod_autoscaler.new_controller,),
    "endpoints-controller": (endpoints.new_controller,),
    "endpointslice-controller": (endpoint_slice.new_controller,),
    "endpointslice-mirroring-controller": (endpoint_slice_mirroring.new_controller,),
    "ttl-after-finished-controller": (ttl_after_finished.new_controller,),
    "disruption-controller": (disruption.new_controller, stale_disruption.new_controller),
    "node-lifecycle-controller": (node_lifecycle.new_controller,),
    "taint-eviction-controller": (taint_eviction.new_controller,),
    "pod-garbage-collector-controller": (pod_garbage_collector.new_controller,),
    "persistentvolume-binder-controller": (persistent_volume.new_controller,),
    "resourceclaim-controller": (resource_claim.new_controller,),
    "ephemeral-volume-controller": (ephemeral_volume.new_controller,),
    "garbage-collector-controller": (garbage_collector.new_controller,),
    "namespace-controller": (namespace.new_controller,),
    "serviceaccount-controller": (service_account.new_controller,),
    "serviceaccount-token-controller": (service_account_token.new_controller,),
    "root-ca-certificate-publisher-controller": (root_ca.new_controller,),
    "resourcequota-controller": (resource_quota.new_controller,),
    "podgroup-protection-controller": (pod_group_protection.new_controller,),
    "persistentvolumeclaim-protection-controller": (volume_protection.new_claim_controller,),
    "persistentvolume-protection-controller": (volume_protection.new_volume_controller,),
    "clusterrole-aggregation-controller": (cluster_role_aggregation.new_controller,),
    "certificatesigningrequest-approving-controller": (certificate_approving.new_controller,),
    "certificatesigningrequest-signing-controller": (certificate_signing.new_controller,),
    "validatingadmissionpolicy-status-controller": (policy_type_checking.new_controller,),
}
"""By the name that kube-controller-manager has for it."""

OF_API_SERVER: Final[Sequence[NewController]] = (flow_schema.new_controller,)
"""Run by kube-apiserver in a real cluster, so that nobody else does their work."""


class _Names(msgspec.Struct, frozen=True):
    """``names.json``: what else ``--controllers`` may name."""

    not_here: frozenset[str]
    """Further controllers of kube-controller-manager."""
    aliases: dict[str, str]
    """What kube-controller-manager called them before 1.28, and still understands."""


NAMES: Final = read("berth.cluster.controllers", "names.json", _Names)


def read_controllers(text: str) -> tuple[str, ...]:
    """Read ``--controllers``, as in ``*,-job-controller``; ValueError for an unknown name."""
    said = [each.strip() for each in text.split(",") if each.strip()]
    read = []
    for each in said:
        sign, name = ("-", each[1:]) if each.startswith("-") else ("", each)
        name = NAMES.aliases.get(name, name)
        if each != "*" and name not in CONTROLLERS and name not in NAMES.not_here:
            raise ValueError(f"{name!r} is not in the list of known controllers")
        read.append(f"{sign}{name}")
    return tuple(read)


def is_enabled(name: str, controllers: Sequence[str]) -> bool:
    """Whether a controller runs: what names it first decides, and ``*`` is all others."""
    for each in controllers:
        if each.removeprefix("-") == name:
            return each == name
    return "*" in controllers


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
        enabled = [
            new_controller
            for name, of_name in CONTROLLERS.items()
            if is_enabled(name, options.controllers)
            for new_controller in of_name
        ]
        made = [new_controller(context) for new_controller in (*enabled, *OF_API_SERVER)]
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
