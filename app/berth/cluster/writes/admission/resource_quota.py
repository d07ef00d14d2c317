"""ResourceQuota: what a namespace may have of everything; the last step, as it charges.

What an object adds to the use of a quota is written into the quota's status when the object is
stored, in one step: no two writes can use the same room. The quota controller takes back what is
no longer used.
"""

from berth.clock import Clock
from berth.cluster import amounts
from berth.cluster.amounts import Amounts
from berth.cluster.kinds.builtin import find
from berth.cluster.quota.evaluators import Evaluator, evaluator_of
from berth.cluster.quota.scopes import requirements_of
from berth.cluster.reading import UNREADABLE
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.by_namespace import ByNamespace
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

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
        return operation is Operation.UPDATE and subresource in evaluator_of(resource).updates

    def validate(self, request: AdmissionRequest) -> None:
        quotas = self._quotas.get(request.namespace)
        if quotas:
            self._charge(request, quotas)

    def _charge(self, request: AdmissionRequest, quotas: tuple[Object, ...]) -> None:
        obj = request.object
        if obj is None:
            return
        evaluator = evaluator_of(request.resource)
        concerned = [each for each in quotas if _concerns(request, evaluator, each, obj)]
        if not concerned:
            return
        now = self._clock.now()
        try:
            wanted = evaluator.usage(obj, now)
        except UNREADABLE as exc:
            raise forbidden(request, f"its quota usage cannot be read: {exc}") from exc
        negative = sorted(name for name, each in wanted.items() if each.nanos < 0)
        if negative:
            why = f"quota usage is negative for resource(s): {','.join(negative)}"
            raise forbidden(request, why)
        if request.old_object is not None:
            wanted = amounts.subtracted(wanted, _usage_before(evaluator, request.old_object, now))
        wanted = {name: each for name, each in wanted.items() if each.nanos}
        charges = []
        for quota in concerned:
            hard, used = _stats(quota)
            asked = amounts.masked(wanted, hard)
            if asked:
                charges.append((quota, _charged(request, quota, asked, used, hard)))
        if charges:
            request.on_stored = lambda: self._write(charges)

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


def _concerns(request: AdmissionRequest, evaluator: Evaluator, quota: Object, obj: Object) -> bool:
    """Tell whether a quota limits what an object uses; refuse an object that does not say what."""
    quota_name = quota["metadata"]["name"]
    try:
        hard, used = _stats(quota)
        requirements = requirements_of(quota.get("spec") or {})
    except UNREADABLE as exc:
        why = f"quota {quota_name} cannot be read, and may be exceeded: {exc}"
        raise forbidden(request, why) from exc
    names = [name for name in hard if evaluator.counts(name)]
    if not names or not evaluator.matches(requirements, obj):
        return False
    missing = evaluator.missing(names, obj)
    if missing:
        raise forbidden(request, f"failed quota: {quota_name}: {missing}")
    unknown = sorted(name for name in names if name not in used)
    if unknown:
        why = f"status unknown for quota: {quota_name}, resources: {','.join(unknown)}"
        raise forbidden(request, why)
    return True


def _charged(
    request: AdmissionRequest, quota: Object, asked: Amounts, used: Amounts, hard: Amounts
) -> Amounts:
    """Return what is used with what is asked for; 403 when that is more than there may be."""
    total = amounts.added(used, asked)
    exceeded = [name for name in asked if total[name].nanos > hard[name].nanos]
    if exceeded:
        said = [amounts.text(amounts.masked(each, exceeded)) for each in (asked, used, hard)]
        why = "exceeded quota: {}, requested: {}, used: {}, limited: {}"
        raise forbidden(request, why.format(quota["metadata"]["name"], *said))
    return total


def _usage_before(evaluator: Evaluator, obj: Object, now: float) -> Amounts:
    """Return what an object used; nothing, where that cannot be read."""
    try:
        return evaluator.usage(obj, now)
    except UNREADABLE:
        return {}


def _stats(quota: Object) -> tuple[Amounts, Amounts]:
    """Return what may be used and what is, as the quota controller last told."""
    status = quota.get("status") or {}
    return amounts.amounts(status.get("hard")), amounts.amounts(status.get("used"))
