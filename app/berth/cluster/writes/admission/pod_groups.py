"""Admission for groups of pods (spec G2.3, G2.4)."""

from collections.abc import Collection
from typing import Final

from berth.cluster import errors
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gates import SCHEDULING, WORKLOAD_WITH_JOB
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.strategies.job import is_gang
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube import field_errors

FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
WORKLOADS: Final = f"workloads.{SCHEDULING}"
JOBS: Final = find("batch", "v1", "jobs")


def _is_pod_group(resource: ResourceType) -> bool:
    return (resource.group, resource.kind) == (SCHEDULING, "PodGroup")


class GangSizeIsFixed(Step):
    """Refuses to scale a Job whose pods are a gang: its Workload cannot change with it.

    Not a plugin of a real server, but what the validation of Jobs does there with the gate. That it
    does and the message are guesses from KEP-5547.
    """

    def __init__(self, features: Collection[str]) -> None:
        self._is_on = WORKLOAD_WITH_JOB in features

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_job = resource.storage_key == JOBS.storage_key
        return self._is_on and is_job and operation is Operation.UPDATE and not subresource

    def validate(self, request: AdmissionRequest) -> None:
        before: Object = (request.old_object or {}).get("spec") or {}
        after: Object = (request.object or {}).get("spec") or {}
        size = after.get("parallelism")
        if is_gang(before) and size != before.get("parallelism"):
            error = field_errors.invalid("spec.parallelism", size, "field is immutable")
            raise errors.invalid(request.resource, request.name, [error])


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
        if template not in [
            pod_group_template["name"]
            for pod_group_template in workload["spec"]["podGroupTemplates"]
        ]:
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
