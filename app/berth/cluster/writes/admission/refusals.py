"""Refusals by admission."""

from collections.abc import Sequence

from berth.cluster import errors
from berth.cluster.errors import StatusError
from berth.cluster.writes.admission.request import AdmissionRequest
from berth.kube.field_errors import FieldError


def forbidden(
    request: AdmissionRequest, why: str, causes: Sequence[FieldError] = ()
) -> StatusError:
    """Return a 403 that names the object; by ``generateName`` where its name is yet to be made."""
    return errors.forbidden(request.resource, name_of(request), why, causes)


def name_of(request: AdmissionRequest) -> str:
    """Return what the object is called in messages."""
    if request.name:
        return request.name
    metadata = (request.object or {}).get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName")
    return name if isinstance(name, str) else "Unknown!"
