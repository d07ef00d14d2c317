"""APIServices that say which groups and versions this server serves itself.

They come and go with the kinds. Sources: ``kube-aggregator/pkg/controllers/autoregister``, and the
priorities of ``cmd/kube-apiserver``.
"""

import uuid
from typing import Final

from berth.cluster import views
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object
from berth.cluster.storage.store import NotFoundError, Store
from berth.runtime.clock import Clock, rfc3339

API_SERVICES: Final = find("apiregistration.k8s.io", "v1", "apiservices")

MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
"""The label of those that are made here."""
FROM_THE_START: Final = "onstart"
COME_AND_GO: Final = "true"

PRIORITIES: Final = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "resource.k8s.io": 15900,
    "storagemigration.k8s.io": 15800,  # a guess
    "metrics.k8s.io": 100,
}
OF_CUSTOM_RESOURCES: Final = (1000, 100)
"""Priorities of their groups, and of their versions."""


class LocalApiServices:
    """Keeps the APIServices in *store* in step with *registry*."""

    def __init__(self, registry: Registry, store: Store, *, clock: Clock) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        self._served: set[str] = set()

    def start(self) -> None:
        """Write those that are wanted, and follow the kinds. Call it once."""
        key = API_SERVICES.group, API_SERVICES.version, API_SERVICES.plural
        if self._registry.find(*key) is None:
            return
        stored = self._store.list(API_SERVICES.storage_key)
        self._served = {each.name for each in stored if each.labels.get(MANAGED)}
        self._follow()
        self._registry.listen(self._follow)

    def _follow(self) -> None:
        wanted = {
            f"{each.version}.{each.group}": (each.group, each.version, each.structural is not None)
            for each in self._registry
            if each.group != API_SERVICES.group
        }
        if wanted.keys() == self._served:
            return
        for name in self._served - wanted.keys():
            try:
                self._store.delete(API_SERVICES.storage_key, "", name)
            except NotFoundError:
                continue  # somebody was faster
        for name in sorted(wanted.keys() - self._served):
            group, version, comes_and_goes = wanted[name]
            self._create(name, group, version, comes_and_goes=comes_and_goes)
        self._served = set(wanted)

    def _create(self, name: str, group: str, version: str, *, comes_and_goes: bool) -> None:
        now = rfc3339(self._clock.now())
        priority, of_version = (
            OF_CUSTOM_RESOURCES if comes_and_goes else (PRIORITIES.get(group, 1000), 15)
        )
        spec: Object = {
            "version": version,
            "groupPriorityMinimum": priority,
            "versionPriority": of_version,
        }
        available = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        obj = {
            **views.type_of(API_SERVICES),
            "metadata": {
                "name": name,
                # It says nothing that its name and time do not; so it takes no randomness.
                "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}/{now}")),
                "creationTimestamp": now,
                "labels": {MANAGED: COME_AND_GO if comes_and_goes else FROM_THE_START},
            },
            "spec": {**({"group": group} if group else {}), **spec},
            "status": {"conditions": [available]},
        }
        try:
            self._store.get(API_SERVICES.storage_key, "", name)
        except NotFoundError:
            self._store.create(API_SERVICES.storage_key, obj)
