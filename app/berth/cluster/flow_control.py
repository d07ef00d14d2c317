"""The objects of API priority and fairness that every server has (KEP-1040): mandatory ones."""

from berth.cluster.access.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from berth.cluster.resources import Object

UPDATED_BY_SERVER = {"apf.kubernetes.io/autoupdate-spec": "true"}


def priority_levels() -> list[Object]:
    """Return ``exempt``, which never waits, and ``catch-all``."""
    return [
        _named(
            "exempt",
            {"type": "Exempt", "exempt": {"lendablePercent": 0, "nominalConcurrencyShares": 0}},
        ),
        _named(
            "catch-all",
            {
                "type": "Limited",
                "limited": {
                    "lendablePercent": 0,
                    "limitResponse": {"type": "Reject"},
                    "nominalConcurrencyShares": 5,
                },
            },
        ),
    ]


def flow_schemas() -> list[Object]:
    """Return who goes to which level: administrators to ``exempt``, everybody to ``catch-all``."""
    return [
        _named("exempt", _flow("exempt", 1, MASTERS)),
        _named(
            "catch-all",
            {
                **_flow("catch-all", 10_000, UNAUTHENTICATED, AUTHENTICATED),
                "distinguisherMethod": {"type": "ByUser"},
            },
        ),
    ]


def _named(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name, "annotations": dict(UPDATED_BY_SERVER)}, "spec": spec}


def _flow(level: str, precedence: int, *groups: str) -> Object:
    everything = {
        "subjects": [{"kind": "Group", "group": {"name": group}} for group in groups],
        "resourceRules": [
            {
                "verbs": ["*"],
                "apiGroups": ["*"],
                "resources": ["*"],
                "clusterScope": True,
                "namespaces": ["*"],
            }
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    return {
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "rules": [everything],
    }
