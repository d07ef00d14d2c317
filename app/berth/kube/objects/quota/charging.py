"""Charging of quotas, as admission of ResourceQuota does it, with its sentences.

Objects are JSON: those of users and the quotas, whose status tells what is used.
"""

from berth.kube.objects import amounts
from berth.kube.objects.amounts import Amounts
from berth.kube.objects.pod_defaults import Object
from berth.kube.objects.quota.evaluators import Evaluator
from berth.kube.objects.quota.scopes import requirements_of
from berth.runtime.errors import MISSHAPEN


class QuotaError(Exception):
    """An object may not be; the message says why, as after ``forbidden:``."""


def wanted_by(evaluator: Evaluator, obj: Object, old: Object | None, *, now: float) -> Amounts:
    """Return what *obj* uses more than it did as *old*. Raises QuotaError if that is negative."""
    try:
        wanted = evaluator.usage(obj, now)
    except MISSHAPEN as exc:
        raise QuotaError(f"its quota usage cannot be read: {exc}") from exc
    negative = sorted(name for name, amount in wanted.items() if amount.nanos < 0)
    if negative:
        raise QuotaError(f"quota usage is negative for resource(s): {','.join(negative)}")
    if old is not None:
        wanted = amounts.subtracted(wanted, _usage_before(evaluator, old, now))
    return {name: amount for name, amount in wanted.items() if amount.nanos}


def concerns(quota: Object, evaluator: Evaluator, obj: Object) -> bool:
    """Tell whether *quota* limits what an object uses.

    Raises QuotaError for an object that does not say what it uses, and for a quota that cannot be
    read, or of which nobody knows what is used.
    """
    quota_name = quota["metadata"]["name"]
    try:
        hard, used = stats(quota)
        requirements = requirements_of(quota.get("spec") or {})
    except MISSHAPEN as exc:
        why = f"quota {quota_name} cannot be read, and may be exceeded: {exc}"
        raise QuotaError(why) from exc
    names = [name for name in hard if evaluator.counts(name)]
    if not names or not evaluator.matches(requirements, obj):
        return False
    missing = evaluator.missing(names, obj)
    if missing:
        raise QuotaError(f"failed quota: {quota_name}: {missing}")
    unknown = sorted(name for name in names if name not in used)
    if unknown:
        raise QuotaError(f"status unknown for quota: {quota_name}, resources: {','.join(unknown)}")
    return True


def is_about(quota: Object, evaluator: Evaluator, obj: Object) -> bool:
    """Tell whether an object is in the scopes of a quota that :func:`concerns` could read."""
    return evaluator.matches(requirements_of(quota.get("spec") or {}), obj)


def charged(name: str, asked: Amounts, used: Amounts, hard: Amounts) -> Amounts:
    """Return what of the quota *name* is used with what is *asked* for.

    Raises QuotaError if that is more than there may be.
    """
    total = amounts.added(used, asked)
    exceeded = [name for name in asked if total[name].nanos > hard[name].nanos]
    if exceeded:
        said = [
            amounts.text(amounts.masked(amount_list, exceeded))
            for amount_list in (asked, used, hard)
        ]
        why = "exceeded quota: {}, requested: {}, used: {}, limited: {}"
        raise QuotaError(why.format(name, *said))
    return total


def stats(quota: Object) -> tuple[Amounts, Amounts]:
    """Return what may be used and what is, as the quota controller last told."""
    status = quota.get("status") or {}
    return amounts.amounts(status.get("hard")), amounts.amounts(status.get("used"))


def _usage_before(evaluator: Evaluator, obj: Object, now: float) -> Amounts:
    """Return what an object used; nothing, where that cannot be read."""
    try:
        return evaluator.usage(obj, now)
    except MISSHAPEN:
        return {}
