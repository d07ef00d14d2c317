"""``AdmissionReview`` of ``admission.k8s.io``: what a webhook is sent, and what it answers.

Its versions ``v1`` and ``v1beta1`` have the same fields.
"""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from berth.cluster.dynamic_admission.matching import converted
from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.admission.request import AdmissionRequest

KIND: Final = "AdmissionReview"
GROUP: Final = "admission.k8s.io"
VERSIONS: Final = ("v1", "v1beta1")
JSON_PATCH: Final = "JSONPatch"


class ReviewError(Exception):
    """The answer is not an AdmissionReview that allows or refuses the request."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a webhook answers."""

    allowed: bool
    status: Object
    """The Status of a refusal; may be empty."""
    warnings: tuple[str, ...]
    patch: list[Any] | None
    """Operations of a JSON patch."""


def version_for(accepted: Iterable[str]) -> str:
    """Return the first of *accepted* that there is, as ``apiVersion`` says it."""
    version = next((each for each in accepted if each in VERSIONS), VERSIONS[0])
    return f"{GROUP}/{version}"


def review_of(
    request: AdmissionRequest, resource: ResourceType, uid: str, api_version: str
) -> Object:
    """Return the review of a request, its objects as *resource* shows them."""
    asked = {
        "uid": uid,
        **attributes_of(request, resource),
        "object": converted(request.object, request.resource, resource),
        "oldObject": converted(request.old_object, request.resource, resource),
    }
    return {"kind": KIND, "apiVersion": api_version, "request": asked}


def attributes_of(request: AdmissionRequest, resource: ResourceType) -> Object:
    """Return all that a review says of a request but its objects, as *resource* shows it."""
    attributes: Object = {
        "kind": _kind(resource),
        "resource": _resource(resource),
        "requestKind": _kind(request.resource),
        "requestResource": _resource(request.resource),
        "operation": str(request.operation),
        "userInfo": request.context.user.info(),
        "dryRun": request.context.dry_run,
        "options": request.options,
    }
    if request.subresource:
        attributes["subResource"] = attributes["requestSubResource"] = request.subresource
    if request.name:
        attributes["name"] = request.name
    if request.namespace:
        attributes["namespace"] = request.namespace
    return attributes


def read_response(content: bytes, review: Object, *, may_patch: bool) -> Response:
    """Read the answer to *review*; raise ReviewError with the words of a real server."""
    uid, expected = review["request"]["uid"], review["apiVersion"]
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ReviewError(f"expected webhook response of {expected}, {KIND}: {exc}") from exc
    if not isinstance(answer, dict):
        raise ReviewError(f"expected webhook response of {expected}, {KIND}")
    kind, version = answer.get("kind"), answer.get("apiVersion")
    if (kind, version) != (KIND, expected):
        raise ReviewError(
            f"expected webhook response of {expected}, Kind={KIND}, got {version}, Kind={kind}"
        )
    response = answer.get("response")
    if not isinstance(response, dict):
        raise ReviewError("webhook response was absent")
    if response.get("uid") != uid:
        raise ReviewError(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    status, warnings = response.get("status") or {}, response.get("warnings") or ()
    return Response(
        response.get("allowed") is True,
        status if isinstance(status, dict) else {},
        tuple(warning for warning in warnings if isinstance(warning, str)),
        _patch(response, may_patch=may_patch),
    )


def _patch(response: Object, *, may_patch: bool) -> list[Any] | None:
    encoded, kind = response.get("patch"), response.get("patchType")
    if not may_patch:
        if encoded or kind:
            raise ReviewError("validating webhook response must not contain a patch")
        return None
    if not encoded:
        if kind:
            raise ReviewError("webhook returned response.patchType but no response.patch")
        return None
    if kind is None:
        raise ReviewError("webhook returned response.patch but no response.patchType")
    if kind != JSON_PATCH:
        raise ReviewError(
            f'invalid webhook response.patchType of "{kind}", expected "{JSON_PATCH}"'
        )
    try:
        operations = msgspec.json.decode(base64.b64decode(encoded, validate=True))
    except (
        TypeError,
        ValueError,
        binascii.Error,
        msgspec.DecodeError,
        RecursionError,
    ) as exc:
        raise ReviewError(f"webhook returned an invalid response.patch: {exc}") from exc
    if not isinstance(operations, list):
        raise ReviewError("webhook returned a response.patch that is not an array")
    return operations


def _kind(resource: ResourceType) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: ResourceType) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
