"""Flows of requests, which share one share of the server (KEP-1040)."""

from typing import Final

from berth.cluster.access.users import (
    CONTROLLER_MANAGER,
    MASTERS,
    NODES,
    SCHEDULER,
    User,
    split_service_account,
)

EXEMPT_USERS: Final = frozenset({CONTROLLER_MANAGER.name, SCHEDULER.name})


def flow_of(user: User) -> str:
    """Return what tells the flow of *user* from others.

    Service accounts of one namespace are one flow: whoever may make one there makes many.
    """
    account = split_service_account(user.name)
    return f"user {user.name}" if account is None else f"namespace {account[0]}"


def is_exempt(user: User) -> bool:
    """Tell whether *user* is served before others: a cluster cannot do without.

    These are the flow schemas ``exempt``, ``system-nodes`` and ``kube-controller-manager`` of the
    API server's priority and fairness.
    """
    groups = user.groups
    return MASTERS in groups or NODES in groups or user.name in EXEMPT_USERS
