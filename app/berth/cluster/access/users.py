"""Users and groups, and the names that Kubernetes reserves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from berth.cluster.resources import Object

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MONITORS: Final = "system:monitoring"
"""The group that may read metrics, of every component that asks the API server."""

MASTERS: Final = "system:masters"
"""The group that may do everything, whatever the roles say."""

NODES: Final = "system:nodes"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    """Who makes a request, as authentication found out."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_master(self) -> bool:
        return MASTERS in self.groups

    def info(self) -> Object:
        """Return the ``UserInfo`` of reviews."""
        info: Object = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
ADMIN: Final = User("berth-admin", (MASTERS, AUTHENTICATED))
"""The user of the kubeconfig; everybody, where nobody is asked who he is."""

API_SERVER: Final = User("system:apiserver", (MASTERS,))
"""What the API server does in its own name."""

SCHEDULER: Final = User("system:kube-scheduler", (AUTHENTICATED,))
CONTROLLER_MANAGER: Final = User("system:kube-controller-manager", (AUTHENTICATED,))
KUBELETS: Final = User("system:node:hollow", (NODES, AUTHENTICATED))
MONITORING: Final = User("berth-monitoring", (MONITORS, AUTHENTICATED))


def service_account(
    namespace: str, name: str, *, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """Return the user that a service account is."""
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(service_account_user(namespace, name), groups, uid, extra or {})


def service_account_user(namespace: str, name: str) -> str:
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def split_service_account(user: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that *user* is; None for other users."""
    if not user.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, colon, name = user.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    return (namespace, name) if colon and namespace and name and ":" not in name else None
