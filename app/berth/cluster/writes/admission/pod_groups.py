"""What admission knows of groups of pods (spec G2.3, G2.4)."""

from typing import Final

from berth.cluster.kinds.gated import SCHEDULING
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
WORKLOADS: Final = f"workloads.{SCHEDULING}"


def _is_pod_group(resource: ResourceType) -> bool:
    return (resource.group, resource.kind) == (SCHEDULING, "PodGroup")


class PodGroupWorkloadExists(Step):
    """Refuses a group that refers to a template that is not there."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        return operation is Operation.CREATE and not subresource and _is_pod_group(resource)

    def validate(self, request: AdmissionRequest) -> None:
        spec: Object = (request.object or {}).get("spec") or {}
        reference = (spec.get("podGroupTemplateRef") or {}).get("workload")
        if reference is None:
            return
        name, template = reference.get("workloadName"), reference.get("podGroupTemplateName")
        try:
            workload = self._store.get(WORKLOADS, request.namespace, name).decode()
        except NotFoundError:
            raise forbidden(request, f'PodGroup rejected: Workload "{name}" not found') from None
        if workload["metadata"].get("deletionTimestamp"):
            why = f'PodGroup rejected: Workload "{name}" is being deleted'
            raise forbidden(request, why)
        if template not in [each["name"] for each in workload["spec"]["podGroupTemplates"]]:
            why = f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{name}"'
            raise forbidden(request, why)


class PodGroupProtection(Step):
    """Puts a finalizer on groups, so that they stay as long as pods name them.

    :mod:`berth.cluster.controllers.pod_group_protection` takes it away.
    """

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        return operation is Operation.CREATE and not subresource and _is_pod_group(resource)

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        metadata = request.object["metadata"]
        present = metadata.get("finalizers") or []
        if FINALIZER not in present:
            metadata["finalizers"] = [*present, FINALIZER]
