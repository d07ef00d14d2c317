"""Leases: who leads, and which nodes live."""

import re

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Int32, Shape, section, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


class LeaseSpec(Shape, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None


class Lease(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: LeaseSpec | None = None


def default(obj: Object) -> None:
    section(obj, "spec")


def validate(new: Lease, old: Lease | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None, plain=True)
    spec = new.spec or LeaseSpec()
    if spec.lease_duration_seconds is not None and spec.lease_duration_seconds <= 0:
        path = "spec.leaseDurationSeconds"
        errors.append(
            field_errors.invalid(path, spec.lease_duration_seconds, "must be greater than 0")
        )
    if spec.lease_transitions is not None and spec.lease_transitions < 0:
        path, detail = "spec.leaseTransitions", "must be greater than or equal to 0"
        errors.append(field_errors.invalid(path, spec.lease_transitions, detail))
    for field, time in (("acquireTime", spec.acquire_time), ("renewTime", spec.renew_time)):
        if time is not None and MICRO_TIME.fullmatch(time) is None:
            detail = "must be a time as in 2006-01-02T15:04:05.000000Z"
            errors.append(field_errors.invalid(f"spec.{field}", time, detail))
    return errors


LEASE = Strategy(default=default, validate=validated(Lease, validate))
