"""The cluster autoscaler of ``berth up``: its machines are hollow kubelets, its user a role."""

import random
from collections.abc import Callable
from typing import Final

from berth.cluster.access.users import service_account
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.insight.whatif.live import LiveSnapshots
from berth.insight.whatif.snapshot import Snapshot
from berth.runtime.clock import Clock
from berth.service.scheduler_service import SchedulerService
from berth.tools.autoscaler.autoscaler import ClusterAutoscaler
from berth.tools.autoscaler.cloud import Cloud, Machines
from berth.tools.autoscaler.node_groups import NodeGroups
from berth.tools.autoscaler.planning_thread import Beside
from berth.tools.up.access_rights import granted

NAMESPACE: Final = "kube-system"
NAME: Final = "cluster-autoscaler"

_RULES: Final = (
    ("", ["nodes"], ["get", "list", "watch", "patch", "delete"]),
    ("", ["pods"], ["get", "list", "watch"]),
    ("", ["pods/eviction"], ["create"]),
    ("", ["events"], ["create", "patch"]),
    ("", ["configmaps"], ["create", "get", "patch"]),
    ("apps", ["daemonsets"], ["list"]),
)


def access_rights() -> list[tuple[ResourceType, Object]]:
    """Return the objects that let the autoscaler do its work."""
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": verbs}
        for group, resources, verbs in _RULES
    ]
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    return [
        (
            find("", "v1", "serviceaccounts"),
            {"metadata": {"name": NAME, "namespace": NAMESPACE}},
        ),
        *granted(NAME, rules, subject),
    ]


def cluster_autoscaler(
    cluster: EmbeddedCluster,
    service: Callable[[], SchedulerService],
    groups: NodeGroups,
    machines: Machines,
    *,
    clock: Clock,
    rng: random.Random,
    beside: Beside | None = None,
) -> ClusterAutoscaler:
    """Return the autoscaler of *cluster*, which asks what if of the running scheduler, *service*.

    It plans *beside* the event loop, by default in a thread.
    The cluster needs :func:`access_rights`.
    """
    snapshots: LiveSnapshots | None = None

    def take_snapshot() -> Snapshot:
        nonlocal snapshots
        core = service().core
        if snapshots is None or snapshots.core is not core:
            snapshots = LiveSnapshots(core)
        return snapshots.take()

    return ClusterAutoscaler(
        cluster.in_process(NAME, user=service_account(NAMESPACE, NAME)),
        groups,
        Cloud(groups.groups, machines, rng=rng),
        take_snapshot=take_snapshot,
        plugins=lambda: service().plugins.registry,
        clock=clock,
        rng=rng,
        beside=beside,
    )
