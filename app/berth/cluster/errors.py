"""Refusals of the API server: ``metav1.Status``, word for word as a real one."""

from collections.abc import Mapping, Sequence
from typing import Any

from berth.cluster.resources import Object, ResourceType
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

MOST_CAUSES = 100
LONGEST_CAUSE = 16 * 1024
"""How much a refusal says: a large body may be wrong in more places than anybody reads, and its
answer would be many times as large."""
SUMMARY_LENGTH = 30
"""Bytes that are shown of a body that cannot be read."""


class StatusError(Exception):
    """A request that ends with a Status: HTTP *code*, machine-readable *reason*, and words.

    The *reason* is empty where the API server does not know one.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        continue_token: str = "",
    ) -> None:
        """*continue_token* is where a list that failed can go on."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = dict(headers or {})
        self.continue_token = continue_token

    def status(self) -> Object:
        """Return the body."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = dict(self.details)
        body["code"] = self.code
        return body


def success(*, details: Mapping[str, Any] | None = None, code: int | None = None) -> Object:
    """Return the Status of a request that has nothing else to say."""
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        body["details"] = dict(details)
    if code is not None:
        body["code"] = code
    return body


def details_of(resource: ResourceType, name: str, **more: object) -> Object:
    """Return ``details`` that name an object by its resource."""
    details: Object = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    return {**details, "kind": resource.plural, **more}


def not_found(resource: ResourceType, name: str) -> StatusError:
    message = f'{resource.qualified_plural} "{name}" not found'
    return StatusError(404, "NotFound", message, details=details_of(resource, name))


class NothingThereError(StatusError):
    """A path below no group and version that is served: its message is all that is said."""

    def __init__(self) -> None:
        super().__init__(404, "", "404 page not found\n")


def path_not_found() -> StatusError:
    """A path below a group and version that is served, but not this one."""
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, details={})


def method_not_allowed(
    why: str = "the server does not allow this method on the requested resource",
) -> StatusError:
    return StatusError(405, "MethodNotAllowed", why, details={})


def already_exists(resource: ResourceType, name: str, *, deleting: bool = False) -> StatusError:
    """*deleting*: the object in the way is on its way out."""
    message = f'{resource.qualified_plural} "{name}" already exists'
    if deleting:
        message = f"object is being deleted: {message}"
    return StatusError(409, "AlreadyExists", message, details=details_of(resource, name))


def conflict(resource: ResourceType, name: str, why: str, *, subresource: str = "") -> StatusError:
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    qualified = f"{plural}.{resource.group}" if resource.group else plural
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    details = {**details_of(resource, name), "kind": plural}
    return StatusError(409, "Conflict", message, details=details)


def modified(resource: ResourceType, name: str) -> StatusError:
    """Optimistic concurrency lost."""
    why = (
        "the object has been modified; "
        "please apply your changes to the latest version and try again"
    )
    return conflict(resource, name, why)


def failed_precondition(resource: ResourceType, name: str, why: str) -> StatusError:
    """A delete is about another object or version. The server names the kind here."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    details = {**details_of(resource, name), "kind": resource.kind}
    return StatusError(409, "Conflict", message, details=details)


REGISTRY = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
"""Where etcd has the kinds that it calls by another name than the API."""


def invalid_object(
    resource: ResourceType,
    namespace: str,
    name: str,
    wanted: str,
    found: str,
    *,
    dry_run: bool = False,
) -> str:
    """Why a conflict: what a PUT means is another object; *found* is the uid that there is.

    A dry run is refused before the storage puts its prefix in front of the key.
    """
    place = REGISTRY.get(resource.plural, resource.plural)
    if resource.structural is not None:
        place = f"{resource.group}/{place}"
    prefix = "" if dry_run else "/registry"
    key = f"{prefix}/{'/'.join(filter(None, (place, namespace, name)))}"
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: {uid_mismatch(wanted, found)}"
    )


def version_needed(resource: ResourceType, name: str) -> StatusError:
    """422: an update says no version. The server says the plural for kind."""
    why = "must be specified for an update"
    error = field_errors.invalid("metadata.resourceVersion", 0, why)
    return _invalid(resource.group, resource.plural, name, [error])


def uid_mismatch(wanted: str, found: str) -> str:
    """Why a conflict: the name is the same, the object is another."""
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"


def invalid(resource: ResourceType, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422: *errors* become the causes, the first :data:`MOST_CAUSES` of them."""
    return _invalid(resource.group, resource.kind, name, errors)


def invalid_question(group: str, errors: Sequence[FieldError]) -> StatusError:
    """422: what is asked is wrong; the server does not say the kind of the question."""
    return _invalid(group, "", "", errors)


def invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    """422: the options of a request, of a *kind* in meta.k8s.io, are not such as may be."""
    return _invalid("meta.k8s.io", kind, "", errors)


def _invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    told = errors[:MOST_CAUSES]
    causes = [
        {"reason": each.reason, "message": _cut(each.message), "field": _cut(each.field)}
        for each in told
    ]
    # What is wrong twice is a cause twice, and told once.
    said = list(dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in causes))
    if len(errors) > len(told):
        said.append(f"and {len(errors) - len(told)} more")
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details: Object = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = causes
    qualified = f"{kind}.{group}" if group else kind
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details=details)


def invalid_patch(shown: str, why: str) -> StatusError:
    """422: what a patch makes of an object is none of its kind; *shown* is the patch, or that."""
    cause = field_errors.invalid("patch", _cut(shown), why)
    told = {"reason": cause.reason, "message": cause.message, "field": cause.field}
    message = f' "" is invalid: {cause.field}: {cause.message}'
    return StatusError(422, "Invalid", message, details={"causes": [told]})


def forbidden(
    resource: ResourceType, name: str, why: str, causes: Sequence[FieldError] = ()
) -> StatusError:
    details = details_of(resource, name)
    if causes:
        details["causes"] = [
            {"reason": c.reason, "message": c.message, "field": c.field} for c in causes
        ]
    message = f'{resource.qualified_plural} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details=details)


def unauthorized() -> StatusError:
    """Who asks could not be found out."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def access_denied(group: str, resource: str, name: str, why: str) -> StatusError:
    """A request that its user may not make; *resource* is empty when it is about a path.

    *resource* is what the URL says, and need not be served.
    """
    message = f"forbidden: {why}"
    if resource:
        qualified = f"{resource}.{group}" if group else resource
        named = f'{qualified} "{name}"' if name else qualified
        message = f"{named} is {message}"
    said = {"name": name, "group": group, "kind": resource}
    details = {key: value for key, value in said.items() if value}
    return StatusError(403, "Forbidden", message, details=details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unrecognized(kind: str, why: str, body: bytes) -> StatusError:
    """A body that cannot be read; *kind* is what it was to be, empty if anything will do."""
    if not kind:
        return bad_request(f"the object provided is unrecognized: {why}")
    part = body[:SUMMARY_LENGTH]
    shown = part.decode(errors="replace") if part.startswith(b"{") else part.hex()
    more = " ..." if len(body) > SUMMARY_LENGTH else ""
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): "
        f"couldn't get version/kind; {why} ({shown or '<empty>'}{more})"
    )


def not_registered(
    kind: str, version: str, scheme: str = "pkg/api/legacyscheme/scheme.go:30"
) -> str:
    """Why a body cannot be decoded: *scheme* is where the kinds are that it may be of."""
    return f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"'


def too_deep(limit: int) -> StatusError:
    """A body, or what a patch makes of an object, with more than *limit* levels."""
    return bad_request(
        "the object provided is unrecognized: exceeded max depth: "
        f"it is nested deeper than {limit} levels"
    )


def expired(message: str, *, continue_token: str = "") -> StatusError:
    return StatusError(410, "Expired", message, continue_token=continue_token)


def too_large_version(wanted: int, current: int) -> StatusError:
    """A read that wants a state that is yet to come; reflectors know to ask anew."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers={"Retry-After": "1"},
    )


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    """The client accepts media types that are served, but in none of the forms that they have."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return StatusError(406, "NotAcceptable", message)


def not_served(available: Sequence[str]) -> StatusError:
    """None of the media types that the client accepts is served."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}"
    return StatusError(406, "NotAcceptable", message, details={})


def not_of_that_shape(kind: str, why: str) -> StatusError:
    """The client accepts *kind*, a list or one object, and it is the other one."""
    return StatusError(
        406, "NotAcceptable", f"you requested {kind}, but the requested object {why}"
    )


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    found = "the body of the request was in an unknown format"
    message = f"{found} - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(why: str) -> StatusError:
    """A request that is refused for its size."""
    message = f"Request entity too large: {why}"
    return StatusError(413, "RequestEntityTooLarge", message, details={})


def body_timeout(seconds: float) -> StatusError:
    """A request whose body did not come in time."""
    message = f"Timeout: the body has not come at the rate that is needed, or within {seconds:g} s"
    return StatusError(408, "Timeout", message, details={})


def no_room(why: str) -> StatusError:
    """The store is full. A real server says 500 in this case, with etcd's words."""
    return StatusError(507, "InsufficientStorage", f"the store is full: {why}", details={})


def unprocessable() -> StatusError:
    """A JSON patch that does not fit the object: the server does not tell why."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, details={})


def internal(message: str) -> StatusError:
    """A bug of ours."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details=details)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CAUSE else f"{text[:LONGEST_CAUSE]}..."
