"""The objects of API priority and fairness that every server has from the start (KEP-1040).

The server limits requests by user itself (:mod:`berth.cluster.access.flows`); these are for
clients that look at them.
"""

from typing import Final, NamedTuple

from berth.cluster.access.users import (
    AUTHENTICATED,
    CONTROLLER_MANAGER,
    MASTERS,
    NODES,
    SCHEDULER,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
)
from berth.cluster.resources import Object

UPDATED_BY_SERVER: Final = {"apf.kubernetes.io/autoupdate-spec": "true"}
PRODUCER: Final = "api-priority-and-fairness-config-producer-v1"
"""Whose objects they are: the manager of their fields."""


class _Level(NamedTuple):
    """A priority level that is limited: its share of the server, and its queues."""

    shares: int
    lendable_percent: int
    queues: int
    hand_size: int


LEVELS: Final = {
    "node-high": _Level(40, 25, 64, 6),
    "system": _Level(30, 33, 64, 6),
    "leader-election": _Level(10, 0, 16, 4),
    "workload-high": _Level(40, 50, 128, 6),
    "workload-low": _Level(100, 90, 128, 6),
    "global-default": _Level(20, 50, 128, 6),
}
QUEUE_LENGTH: Final = 50


def _all_of(*names: str, scope: bool = True, verbs: str = "*", group: str = "*") -> Object:
    """Return a rule about resources of a group in all namespaces, and beyond with *scope*."""
    rule: Object = {
        "verbs": verbs.split(),
        "apiGroups": [group],
        "resources": list(names or ("*",)),
        "namespaces": ["*"],
    }
    return rule | ({"clusterScope": True} if scope else {})


def _group(name: str) -> Object:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Object:
    return {"kind": "User", "user": {"name": name}}


EVERY_PATH: Final = {"verbs": ["*"], "nonResourceURLs": ["*"]}
PROBES: Final = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}
LEASES: Final = "coordination.k8s.io"
SYSTEM_ACCOUNTS: Final = {
    "kind": "ServiceAccount",
    "serviceAccount": {"namespace": "kube-system", "name": "*"},
}
EVERYBODY: Final = (_group(UNAUTHENTICATED), _group(AUTHENTICATED))
COMPONENTS: Final = (_user(CONTROLLER_MANAGER.name), _user(SCHEDULER.name))


class _Flow(NamedTuple):
    """A flow schema: whose requests, about what (all if nothing is said), go to which level."""

    precedence: int
    level: str
    subjects: tuple[Object, ...]
    distinguisher: str = ""
    resources: tuple[Object, ...] = (_all_of(),)
    paths: tuple[Object, ...] = (EVERY_PATH,)


FLOWS: Final = {
    "exempt": _Flow(1, "exempt", (_group(MASTERS),)),
    "probes": _Flow(2, "exempt", EVERYBODY, resources=(), paths=(PROBES,)),
    "system-leader-election": _Flow(
        100,
        "leader-election",
        (*COMPONENTS, SYSTEM_ACCOUNTS),
        "ByUser",
        (_all_of("leases", scope=False, verbs="get create update", group=LEASES),),
        (),
    ),
    "system-node-high": _Flow(
        400,
        "node-high",
        (_group(NODES),),
        "ByUser",
        (_all_of("nodes", "nodes/status", group=""), _all_of("leases", scope=False, group=LEASES)),
        (),
    ),
    "system-nodes": _Flow(500, "system", (_group(NODES),), "ByUser"),
    "kube-controller-manager": _Flow(800, "workload-high", COMPONENTS[:1], "ByNamespace"),
    "kube-scheduler": _Flow(800, "workload-high", COMPONENTS[1:], "ByNamespace"),
    "kube-system-service-accounts": _Flow(900, "workload-high", (SYSTEM_ACCOUNTS,), "ByNamespace"),
    "service-accounts": _Flow(9000, "workload-low", (_group(SERVICE_ACCOUNTS),), "ByUser"),
    "global-default": _Flow(9900, "global-default", EVERYBODY, "ByUser"),
    "catch-all": _Flow(10_000, "catch-all", EVERYBODY, "ByUser"),
}


def priority_levels() -> list[Object]:
    """Return the levels: ``exempt``, which never waits, ``catch-all``, and those between."""
    exempt = {"lendablePercent": 0, "nominalConcurrencyShares": 0}
    rest = _limited(5, 0, {"type": "Reject"})
    return [
        _named("exempt", {"type": "Exempt", "exempt": exempt}),
        *(_named(name, _queued(level)) for name, level in LEVELS.items()),
        _named("catch-all", rest),
    ]


def flow_schemas() -> list[Object]:
    """Return who goes to which level."""
    return [_named(name, _schema(flow)) for name, flow in FLOWS.items()]


def _named(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name, "annotations": dict(UPDATED_BY_SERVER)}, "spec": spec}


def _queued(level: _Level) -> Object:
    queuing = {
        "queues": level.queues,
        "handSize": level.hand_size,
        "queueLengthLimit": QUEUE_LENGTH,
    }
    return _limited(level.shares, level.lendable_percent, {"type": "Queue", "queuing": queuing})


def _limited(shares: int, lendable_percent: int, response: Object) -> Object:
    return {
        "type": "Limited",
        "limited": {
            "lendablePercent": lendable_percent,
            "limitResponse": response,
            "nominalConcurrencyShares": shares,
        },
    }


def _schema(flow: _Flow) -> Object:
    rule: Object = {"subjects": list(flow.subjects)}
    if flow.resources:
        rule["resourceRules"] = list(flow.resources)
    if flow.paths:
        rule["nonResourceRules"] = list(flow.paths)
    schema: Object = {
        "matchingPrecedence": flow.precedence,
        "priorityLevelConfiguration": {"name": flow.level},
        "rules": [rule],
    }
    if flow.distinguisher:
        schema["distinguisherMethod"] = {"type": flow.distinguisher}
    return schema
