"""The steps that the embedded cluster has, in the order of a real server.

That is ``AllOrderedPlugins`` of ``k8s.io/kubernetes/pkg/kubeapiserver/options``.
"""

from collections.abc import Callable

from berth.cluster.access.escalation import Escalation
from berth.cluster.access.rbac import Authorizer
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.chain import Admission
from berth.cluster.writes.admission.default_storage_class import DefaultStorageClass
from berth.cluster.writes.admission.default_toleration_seconds import DefaultTolerationSeconds
from berth.cluster.writes.admission.namespace_lifecycle import NamespaceLifecycle
from berth.cluster.writes.admission.priority import Priority

MakeAdmission = Callable[[Store, Authorizer], Admission]


def standard_admission(store: Store, authorizer: Authorizer) -> Admission:
    """Return admission as a real server has it by default."""
    return Admission(
        (
            NamespaceLifecycle(store),
            Priority(store),
            DefaultTolerationSeconds(),
            DefaultStorageClass(store),
            # Not a plugin of a real server, but what its RBAC storage does after all of them.
            Escalation(authorizer),
        )
    )
