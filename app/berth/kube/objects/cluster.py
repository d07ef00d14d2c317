"""Small objects that schedulers read or write: namespaces, priority classes, leases, owners."""

from berth.kube.objects.meta import KubeStruct, LabelSelector, ObjectMeta


class Namespace(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()


class PriorityClass(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class LeaseSpec(KubeStruct, frozen=True, gc=False):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


class ServiceSpec(KubeStruct, frozen=True, gc=False):
    selector: dict[str, str] | None = None


class Service(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(KubeStruct, frozen=True, gc=False):
    """``spec.selector`` is a plain map, as in a Service."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(KubeStruct, frozen=True, gc=False):
    selector: LabelSelector | None = None


class ReplicaSet(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
