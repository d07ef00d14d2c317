"""The embedded cluster: a Kubernetes REST API in one process, for laptops and tests.

What lives here: the object store, the API server over HTTP, users and their rights, admission,
controllers and hollow kubelets. Controllers and kubelets are clients of the API like any other and
work against a real API server too. What must not: anything of the scheduler; it does not know the
embedded cluster exists. Neighbours: ``berth.kube.objects`` (quantities, selectors),
``berth.kube.client`` (how controllers and kubelets speak to the API). Objects are plain dicts here,
because a server must keep fields that it does not know. :class:`Cluster` is for other people's
tests.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from berth.cluster.running_cluster import Cluster, ClusterError

__all__ = ["Cluster", "ClusterError"]


def __getattr__(name: str) -> Any:
    """Import :class:`Cluster` when it is asked for: it takes a second to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from berth.cluster import running_cluster

    return getattr(running_cluster, name)
