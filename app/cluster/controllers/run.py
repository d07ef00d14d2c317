"""All controllers, connected: the one place where tables, controllers, loops and watches meet."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from app.clock import Clock
from app.cluster.actions import Requester
from app.cluster.controllers.cluster_role_aggregation import (
    ClusterRoleAggregationController,
    ClusterRoleView,
)
from app.cluster.controllers.controller import Controller
from app.cluster.controllers.deployment import DeploymentController
from app.cluster.controllers.disruption import DisruptionController
from app.cluster.controllers.ephemeral_volume import EphemeralVolumeController
from app.cluster.controllers.garbage_collector import GarbageCollector, Kind
from app.cluster.controllers.loop import Loop
from app.cluster.controllers.namespace import NamespaceController
from app.cluster.controllers.persistent_volume import PersistentVolumeController
from app.cluster.controllers.replica_set import ReplicaSetController
from app.cluster.controllers.resource_claim import ResourceClaimController
from app.cluster.controllers.service_account import ServiceAccountController
from app.cluster.controllers.stateful_set import StatefulSetController
from app.cluster.controllers.table import Table
from app.cluster.controllers.views import (
    NamespaceView,
    ObjectView,
    PodView,
    ResourceView,
    StorageClassView,
    WorkloadView,
)
from app.informer.reflector import Reflector
from app.tasks import forever

log = logging.getLogger(__name__)

CONCURRENCY: Final = 48
"""Requests under way at a time, of all controllers together."""

STORAGE: Final = "/apis/storage.k8s.io/v1"
DEVICES: Final = "/apis/resource.k8s.io/v1"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"

NAMESPACED: Final = (
    "/apis/apps/v1/namespaces/{namespace}/deployments",
    "/apis/apps/v1/namespaces/{namespace}/replicasets",
    "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "/api/v1/namespaces/{namespace}/replicationcontrollers",
    "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates",
    "/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities",
    "/api/v1/namespaces/{namespace}/services",
    "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
    "/api/v1/namespaces/{namespace}/events",
    "/api/v1/namespaces/{namespace}/pods",
    "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "/api/v1/namespaces/{namespace}/serviceaccounts",
    "/api/v1/namespaces/{namespace}/secrets",
    "/api/v1/namespaces/{namespace}/configmaps",
)
"""What a namespace holds, owners first."""


class Client(Requester, Protocol):
    """What is needed of :class:`app.client.api_client.ApiClient`."""

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]: ...


class Controllers:
    """The controllers of a cluster. :meth:`run` ends only by cancellation.

    They decide nothing before they know everything: loops start when all watches are synced.
    """

    def __init__(self, client: Client, *, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._slots = asyncio.Semaphore(CONCURRENCY)
        deployments: Table[WorkloadView] = Table()
        replica_sets: Table[WorkloadView] = Table()
        replication_controllers: Table[WorkloadView] = Table()
        stateful_sets: Table[WorkloadView] = Table()
        budgets: Table[ResourceView] = Table()
        pods: Table[PodView] = Table()
        namespaces: Table[NamespaceView] = Table()
        volumes: Table[ResourceView] = Table()
        volume_claims: Table[ResourceView] = Table()
        storage_classes: Table[StorageClassView] = Table()
        claims: Table[ResourceView] = Table()
        claim_templates: Table[ResourceView] = Table()
        service_accounts: Table[ObjectView] = Table()
        cluster_roles: Table[ClusterRoleView] = Table()
        self._reflectors: list[Reflector[Any]] = [
            self._reflector("/apis/apps/v1/deployments", deployments, WorkloadView),
            self._reflector("/apis/apps/v1/replicasets", replica_sets, WorkloadView),
            self._reflector(
                "/api/v1/replicationcontrollers",
                replication_controllers,
                WorkloadView,
                decode=decode_replication_controller,
            ),
            self._reflector("/apis/apps/v1/statefulsets", stateful_sets, WorkloadView),
            self._reflector("/apis/policy/v1/poddisruptionbudgets", budgets, ResourceView),
            self._reflector("/api/v1/pods", pods, PodView),
            self._reflector("/api/v1/namespaces", namespaces, NamespaceView),
            self._reflector("/api/v1/persistentvolumes", volumes, ResourceView),
            self._reflector("/api/v1/persistentvolumeclaims", volume_claims, ResourceView),
            self._reflector(f"{STORAGE}/storageclasses", storage_classes, StorageClassView),
            self._reflector(f"{DEVICES}/resourceclaims", claims, ResourceView),
            self._reflector(f"{DEVICES}/resourceclaimtemplates", claim_templates, ResourceView),
            self._reflector("/api/v1/serviceaccounts", service_accounts, ObjectView),
            self._reflector(f"{RBAC}/clusterroles", cluster_roles, ClusterRoleView),
        ]
        kinds = [
            Kind("Deployment", "/apis/apps/v1", "deployments", deployments),
            Kind("ReplicaSet", "/apis/apps/v1", "replicasets", replica_sets),
            Kind(
                "ReplicationController",
                "/api/v1",
                "replicationcontrollers",
                replication_controllers,
            ),
            Kind("StatefulSet", "/apis/apps/v1", "statefulsets", stateful_sets),
            Kind("Pod", "/api/v1", "pods", pods),
            Kind("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", volume_claims),
            Kind("ResourceClaim", DEVICES, "resourceclaims", claims),
        ]
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
                    kind="ReplicationController",
                ),
                StatefulSetController(stateful_sets, pods, volume_claims),
                DisruptionController(
                    budgets,
                    pods,
                    {
                        "Deployment": deployments,
                        "ReplicaSet": replica_sets,
                        "ReplicationController": replication_controllers,
                        "StatefulSet": stateful_sets,
                    },
                    clock=clock,
                ),
                PersistentVolumeController(volumes, volume_claims, storage_classes),
                ResourceClaimController(pods, claims, claim_templates),
                EphemeralVolumeController(pods, volume_claims),
                GarbageCollector(kinds),
                NamespaceController(namespaces, list(NAMESPACED)),
                ServiceAccountController(namespaces, service_accounts),
                ClusterRoleAggregationController(cluster_roles),
            )
        ]

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

    def _reflector(
        self,
        path: str,
        table: Table[Any],
        view: type[ObjectView],
        *,
        decode: Callable[[bytes], ObjectView] | None = None,
    ) -> Reflector[Any]:
        decode = decode or msgspec.json.Decoder(view).decode
        return Reflector(
            self._client,
            path,
            decode=decode,
            handler=table,
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


def _log_malformed(key: str, _raw: bytes, error: Exception) -> None:
    log.warning("object cannot be read", extra={"key": key, "error": str(error)})
