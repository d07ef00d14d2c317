"""ResourceQuota: what a namespace may have of everything; the last step, as it charges.

What an object adds to the use of a quota is written into the quota's status when the object is
stored, in one step: no two writes can use the same room. The quota controller takes back what is
no longer used.
"""

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.by_namespace import ByNamespace
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube.objects import amounts
from berth.kube.objects.amounts import Amounts
from berth.kube.objects.quota.charging import (
    QuotaError,
    charged,
    concerns,
    is_about,
    stats,
    wanted_by,
)
from berth.kube.objects.quota.evaluators import evaluator_of
from berth.runtime.clock import Clock

RESOURCE_QUOTAS = find("", "v1", "resourcequotas")
QUOTAS = RESOURCE_QUOTAS.storage_key


class ResourceQuota(Step):
    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._quotas = ByNamespace(store, RESOURCE_QUOTAS, unreadable=True)

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        if not (resource.namespaced and resource.is_stored):
            return False
        if operation is Operation.CREATE:
            return not subresource
        updates = evaluator_of(resource.qualified_plural).updates
        return operation is Operation.UPDATE and subresource in updates

    def validate(self, request: AdmissionRequest) -> None:
        quotas = self._quotas.get(request.namespace)
        if quotas:
            self._charge(request, quotas)

    def _charge(self, request: AdmissionRequest, quotas: tuple[Object, ...]) -> None:
        try:
            charges = self._charges(request, quotas)
        except QuotaError as exc:
            raise forbidden(request, str(exc)) from exc
        if charges:
            request.on_stored = lambda: self._write(charges)

    def _charges(
        self, request: AdmissionRequest, quotas: tuple[Object, ...]
    ) -> list[tuple[Object, Amounts]]:
        """Return what is used of each quota with what is asked for; raises QuotaError."""
        obj = request.object
        if obj is None:
            return []
        evaluator, old = evaluator_of(request.resource.qualified_plural), request.old_object
        if old is not None and not evaluator.concerns_update(request.subresource, obj, old):
            return []
        charges = []
        for quota in quotas:
            if not concerns(quota, evaluator, obj):
                continue
            # What comes into a scope by an update is charged in full.
            before = old if old is not None and is_about(quota, evaluator, old) else None
            wanted = wanted_by(evaluator, obj, before, now=self._clock.now())
            hard, used = stats(quota)
            asked = amounts.masked(wanted, hard)
            if not asked:
                continue
            if request.subresource == "status":  # it tells what is so already
                charges.append((quota, amounts.added(used, asked)))
            else:
                charges.append((quota, charged(quota["metadata"]["name"], asked, used, hard)))
        return charges

    def _write(self, charges: list[tuple[Object, Amounts]]) -> None:
        for quota, used in charges:
            metadata = quota["metadata"]
            try:
                stored = self._store.get(QUOTAS, metadata["namespace"], metadata["name"])
            except NotFoundError:
                continue
            new = stored.decode()
            new["status"]["used"] = amounts.quantities(used)
            self._store.update(QUOTAS, new)
