"""Request bodies: objects and patches, and what to say of fields that nobody knows."""

from dataclasses import dataclass
from typing import Any

import msgspec

from app.cluster import errors, negotiation, protobuf, schema
from app.cluster.patch import Json, PatchError, PatchMismatchError, json_patch, merge_patch
from app.cluster.resources import FieldError, Object, ResourceType
from app.cluster.strategic_merge import strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)

NO_APPLY = (
    "server-side apply (application/apply-patch+yaml) is not served by the embedded cluster - "
    f"accepted media types include: {', '.join(PATCH_TYPES)}"
)


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch and its language."""

    media_type: str
    value: Json

    def apply(self, document: Object, resource: ResourceType) -> Json:
        """Return what the patch makes of *document*; 400 if it is malformed, 422 if it misfits."""
        try:
            match self.media_type:
                case "application/json-patch+json":
                    return json_patch(document, self.value)
                case "application/merge-patch+json":
                    return merge_patch(document, self.value)
                case _:
                    return strategic_merge(document, self.value, schema.model_of(resource))
        except PatchError as exc:
            raise errors.bad_request(f"error decoding patch: {exc}") from exc
        except PatchMismatchError as exc:
            raise errors.unprocessable(str(exc)) from exc


def read_patch(content: bytes, content_type: str) -> Patch:
    """Decode the body of a PATCH; 415 when its language is not served."""
    media_type = negotiation.media_type(content_type)
    if media_type == negotiation.APPLY_PATCH:
        raise errors.StatusError(415, "UnsupportedMediaType", NO_APPLY, details={})
    if media_type not in PATCH_TYPES:
        raise errors.unsupported_media_type(PATCH_TYPES)
    return Patch(media_type, negotiation.decode_json(content).value)


class Bodies:
    """Reads the objects of one request as its ``fieldValidation`` wants them judged."""

    def __init__(self, resource: ResourceType, field_validation: str) -> None:
        self._resource = resource
        self._validation = field_validation
        self.warnings: list[str] = []
        """What ``Warn`` makes of unknown and repeated fields."""

    def read(self, content: bytes, content_type: str) -> Any:
        """Decode an object; with ``Strict``, 400 for fields that it should not have."""
        if negotiation.media_type(content_type) == protobuf.MEDIA_TYPE:
            return protobuf.decode(content, schema.model_of(self._resource))
        ignores = self._validation == "Ignore"
        body = negotiation.decode(content, content_type, strict=not ignores)
        found = [] if ignores else self._unknown(body.value)
        found += [f'duplicate field "{path}"' for path in body.duplicates]
        if self._validation == "Strict" and found:
            kind = self._resource.kind
            raise errors.bad_request(
                f'{kind} in version "{self._resource.version}" cannot be handled as a {kind}: '
                f"strict decoding error: {', '.join(found)}"
            )
        self.warnings += found
        return body.value

    def patched(self, patch: Patch, current: Object) -> Any:
        """Apply a patch; with ``Strict``, 422 for fields that the result should not have."""
        result = patch.apply(current, self._resource)
        found = [] if self._validation == "Ignore" else self._unknown(result)
        if self._validation == "Strict" and found:
            said = msgspec.json.encode(patch.value).decode()
            text = f"Invalid value: {said}: strict decoding error: {', '.join(found)}"
            error = FieldError("patch", "FieldValueInvalid", text)
            raise errors.invalid(self._resource, current["metadata"]["name"], [error])
        self.warnings += found
        return result

    def _unknown(self, body: Any) -> list[str]:
        fields = schema.unknown_fields(self._resource, body) if isinstance(body, dict) else []
        return [f'unknown field "{path}"' for path in fields]
