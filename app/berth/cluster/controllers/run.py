"""All controllers, connected: the one place where tables, controllers, loops and watches meet."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from berth.client.api import Api
from berth.clock import Clock
from berth.cluster.access.signing_key import SigningKey
from berth.cluster.controllers.cluster_role_aggregation import (
    ClusterRoleAggregationController,
    ClusterRoleView,
)
from berth.cluster.controllers.controller import Controller
from berth.cluster.controllers.deployment import DeploymentController
from berth.cluster.controllers.disruption import DisruptionController
from berth.cluster.controllers.ephemeral_volume import EphemeralVolumeController
from berth.cluster.controllers.garbage_collector import GarbageCollector, Kind
from berth.cluster.controllers.loop import Loop
from berth.cluster.controllers.namespace import NamespaceController
from berth.cluster.controllers.persistent_volume import PersistentVolumeController
from berth.cluster.controllers.replica_set import ReplicaSetController
from berth.cluster.controllers.resource_claim import ResourceClaimController
from berth.cluster.controllers.root_ca import RootCAController, decode_config_map
from berth.cluster.controllers.service_account import ServiceAccountController
from berth.cluster.controllers.service_account_token import (
    ServiceAccountTokenController,
    decode_secret,
)
from berth.cluster.controllers.stateful_set import StatefulSetController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    NamespaceView,
    ObjectView,
    PodView,
    ResourceView,
    StorageClassView,
    WorkloadView,
)
from berth.cluster.kinds.builtin import RESOURCES, find
from berth.cluster.kinds.registry import collected, swept
from berth.informer.reflector import Reflector
from berth.tasks import forever

log = logging.getLogger(__name__)

CONCURRENCY: Final = 48
"""Requests under way at a time, of all controllers together."""

VIEWS: Final[Mapping[str, type[ObjectView]]] = {
    "clusterroles.rbac.authorization.k8s.io": ClusterRoleView,
    "deployments.apps": WorkloadView,
    "namespaces": NamespaceView,
    "persistentvolumeclaims": ResourceView,
    "persistentvolumes": ResourceView,
    "poddisruptionbudgets.policy": ResourceView,
    "pods": PodView,
    "replicasets.apps": WorkloadView,
    "replicationcontrollers": WorkloadView,
    "resourceclaims.resource.k8s.io": ResourceView,
    "resourceclaimtemplates.resource.k8s.io": ResourceView,
    "statefulsets.apps": WorkloadView,
    "storageclasses.storage.k8s.io": StorageClassView,
}
"""What is read of the kinds that controllers act on, by storage key; of others the metadata."""


class Controllers:
    """The controllers of a cluster. :meth:`run` ends only by cancellation.

    They decide nothing before they know everything: loops start when all watches are synced.
    """

    def __init__(
        self,
        client: Api,
        *,
        clock: Clock,
        rng: random.Random,
        certificate: str = "",
        signing_key: SigningKey | None = None,
    ) -> None:
        """*certificate* is what clients are to trust, in PEM; empty: there is none to publish.

        *signing_key* is that of the API server for service account tokens; None: Secrets get none.
        """
        self._client = client
        self._clock = clock
        self._rng = rng
        self._slots = asyncio.Semaphore(CONCURRENCY)
        kinds = [Kind(each, Table()) for each in collected(RESOURCES)]
        self._reflectors = [self._reflector(each) for each in kinds]
        tables: dict[str, Table[Any]] = {each.resource.storage_key: each.table for each in kinds}
        deployments = tables["deployments.apps"]
        replica_sets = tables["replicasets.apps"]
        replication_controllers = tables["replicationcontrollers"]
        stateful_sets = tables["statefulsets.apps"]
        pods = tables["pods"]
        namespaces = tables["namespaces"]
        volume_claims = tables["persistentvolumeclaims"]
        claims = tables["resourceclaims.resource.k8s.io"]
        self._loops = [
            self._loop(controller)
            for controller in (
                DeploymentController(deployments, replica_sets, pods, clock=clock),
                ReplicaSetController(replica_sets, pods, clock=clock, rng=rng),
                ReplicaSetController(
                    replication_controllers,
                    pods,
                    clock=clock,
                    rng=rng,
                    resource=find("", "v1", "replicationcontrollers"),
                ),
                StatefulSetController(stateful_sets, pods, volume_claims),
                DisruptionController(
                    tables["poddisruptionbudgets.policy"],
                    pods,
                    {
                        "Deployment": deployments,
                        "ReplicaSet": replica_sets,
                        "ReplicationController": replication_controllers,
                        "StatefulSet": stateful_sets,
                    },
                    clock=clock,
                ),
                PersistentVolumeController(
                    tables["persistentvolumes"],
                    volume_claims,
                    tables["storageclasses.storage.k8s.io"],
                ),
                ResourceClaimController(
                    pods, claims, tables["resourceclaimtemplates.resource.k8s.io"]
                ),
                EphemeralVolumeController(pods, volume_claims),
                GarbageCollector(kinds),
                NamespaceController(namespaces, swept(RESOURCES)),
                ServiceAccountController(namespaces, tables["serviceaccounts"]),
                ClusterRoleAggregationController(tables["clusterroles.rbac.authorization.k8s.io"]),
            )
        ]
        if certificate:
            root_ca = RootCAController(namespaces, tables["configmaps"], certificate=certificate)
            self._loops.append(self._loop(root_ca))
        if signing_key is not None:
            token_controller = ServiceAccountTokenController(
                tables["secrets"],
                tables["serviceaccounts"],
                key=signing_key,
                certificate=certificate,
            )
            self._loops.append(self._loop(token_controller))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, reflector in enumerate(self._reflectors):
                name = f"controllers watch {number}"
                group.create_task(forever(name, reflector.run), name=name)
            for reflector in self._reflectors:
                await reflector.synced.wait()
            for loop in self._loops:
                name = f"controller {loop.name}"
                group.create_task(forever(name, loop.run), name=name)

    def _loop(self, controller: Controller) -> Loop:
        return Loop(controller, self._client, clock=self._clock, slots=self._slots)

    def _reflector(self, kind: Kind) -> Reflector[Any]:
        key = kind.resource.storage_key
        view = VIEWS.get(key, ObjectView)
        return Reflector(
            self._client,
            kind.resource.collection_path(),
            decode=_DECODERS.get(key) or msgspec.json.Decoder(view).decode,
            handler=kind.table,
            clock=self._clock,
            rng=self._rng,
            on_malformed=_log_malformed,
        )


def decode_replication_controller(data: bytes) -> WorkloadView:
    """Read a ReplicationController as a ReplicaSet: its selector is a map of labels."""
    view = _decode_workload(data)
    spec = {**view.spec, "selector": {"matchLabels": view.spec.get("selector") or {}}}
    return msgspec.structs.replace(view, spec=spec)


_decode_workload = msgspec.json.Decoder(WorkloadView).decode

_DECODERS: Final[Mapping[str, Callable[[bytes], ObjectView]]] = {
    "configmaps": decode_config_map,
    "replicationcontrollers": decode_replication_controller,
    "secrets": decode_secret,
}


def _log_malformed(key: str, _raw: bytes, error: Exception) -> None:
    log.warning("object cannot be read", extra={"key": key, "error": str(error)})
