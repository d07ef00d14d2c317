"""Request bodies: objects and patches, read into what the writes take, or refused.

What comes out is as the API's Go types would write it (:mod:`.schemas.presence`), says its type,
and has every field that its kind knows in the right JSON type, and no other: those are dropped, and
talked about if the client wants that.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from berth.cluster import errors, views
from berth.cluster.custom import pruning
from berth.cluster.go_text import as_go_escapes, not_unmarshalled, plus_v
from berth.cluster.http import negotiation
from berth.cluster.options import FieldValidation
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin, checks, protobuf, quantities
from berth.cluster.schemas.go_value import in_go_order
from berth.cluster.schemas.presence import complete
from berth.cluster.schemas.types import Schema
from berth.cluster.warnings import quoted
from berth.cluster.writes.patch import (
    Json,
    PatchError,
    PatchMismatchError,
    PatchTooLargeError,
    in_merged_order,
    in_patched_order,
    json_patch,
    merge_patch,
)
from berth.cluster.writes.strategic_merge import MergeError, strategic_merge
from berth.cluster.written import keep_order, keep_text, without_text
from berth.kube import documents
from berth.kube.documents import DEPTH_LIMIT, depth_of

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, negotiation.APPLY_PATCH)
PATCH_TYPES_OF_CUSTOM_RESOURCES = (JSON_PATCH, MERGE_PATCH, negotiation.APPLY_PATCH)


class Patch(msgspec.Struct, frozen=True):
    """A patch and its language."""

    media_type: str
    value: Json

    def apply(self, document: Object, resource: ResourceType) -> Json:
        """Return what the patch makes of *document*; 400 if it is malformed, 422 if it misfits.

        The result may share parts with *document* and the patch, and have nulls.
        """
        try:
            match self.media_type:
                case "application/json-patch+json":
                    return json_patch(document, self.value)
                case "application/merge-patch+json":
                    return merge_patch(document, self.value)
                case _:
                    return strategic_merge(document, self.value, resource.schema)
        except PatchError as exc:
            raise errors.bad_request(str(exc)) from exc
        except MergeError as exc:
            raise errors.StatusError(500, "", str(exc)) from exc
        except PatchTooLargeError as exc:
            raise errors.too_large(str(exc)) from exc
        except PatchMismatchError as exc:
            raise errors.unprocessable() from exc


def read_patch(content: bytes, content_type: str) -> Patch:
    """Decode the body of a PATCH; 415 when its language is not served.

    What is to be applied is no patch in this sense: see :meth:`Bodies.applied`.
    """
    media_type = negotiation.media_type(content_type)
    if media_type not in PATCH_TYPES:
        raise errors.unsupported_media_type(PATCH_TYPES)
    return Patch(media_type, negotiation.decode_json(content))


def read_plain(content: bytes, content_type: str, schema: Schema) -> Any:
    """Decode a body that is not of a kind that is stored: a Binding, a Scale, DeleteOptions.

    *schema* is for those who send protobuf; nothing else is checked against it.
    """
    if negotiation.media_type(content_type) == protobuf.MEDIA_TYPE:
        return decode_protobuf(content, schema)
    json = negotiation.as_json(content, content_type)
    body = negotiation.decode_json(json)
    if b"null" in json:
        complete(schema, body)
    if not isinstance(body, dict):
        raise errors.unrecognized("", not_unmarshalled(body, TYPE_META), json)
    if wrong := checks.misfit(schema, body):
        raise errors.bad_request(wrong)
    return body


def decode_protobuf(content: bytes, schema: Schema) -> Object:
    """Return the object in a protobuf body; 400 when it cannot be read, or is nested too deeply."""
    try:
        obj = protobuf.decode(content, schema)
    except protobuf.ProtobufError as exc:
        raise errors.bad_request(f"the protobuf body cannot be read: {exc}") from exc
    except RecursionError as exc:
        raise errors.too_deep(DEPTH_LIMIT) from exc
    if depth_of(obj) > DEPTH_LIMIT:
        raise errors.too_deep(DEPTH_LIMIT)
    return obj


class _MisfitError(Exception):
    """A value has the wrong JSON type for its field, in the words of Go's decoder."""


class Bodies:
    """Reads the objects of one request, evaluated as its ``fieldValidation`` wants."""

    def __init__(
        self,
        resource: ResourceType,
        validation: FieldValidation,
        warnings: list[str],
        repeated_keys: Sequence[str] = (),
    ) -> None:
        """To *warnings* goes what is to be said of unknown and repeated fields.

        *repeated_keys* is what was said of a body that was YAML.
        """
        self._resource = resource
        self._validation = validation
        self._warnings = warnings
        self._repeated_keys = repeated_keys

    def read(self, content: bytes, content_type: str) -> Object:
        """Decode an object; 400 when it is none of the kind, or has fields that it should not."""
        resource = self._resource
        if negotiation.media_type(content_type) == protobuf.MEDIA_TYPE:
            obj = typed(resource, decode_protobuf(content, resource.schema))
            self._write_canonically(obj)
            return obj
        json = negotiation.as_json(content, content_type)
        body = negotiation.decode_json(json, resource.kind)
        obj = typed(resource, body)
        try:
            found = self._corrected(obj)
        except _MisfitError as exc:
            raise _cannot_be_handled(resource, str(exc)) from None
        if self._validation in (FieldValidation.STRICT, FieldValidation.WARN):
            # Only when told: to see a key twice takes a decoder of its own, ten times slower.
            room = checks.MOST_UNKNOWN - len(found)
            repeated = dict.fromkeys(negotiation.duplicates(json))
            found += [f"duplicate field {quoted(path)}" for path in list(repeated)[:room]]
        in_yaml = self._repeated_keys[: checks.MOST_UNKNOWN]
        if (found or in_yaml) and self._validation is FieldValidation.STRICT:
            said = [f"yaml: {_unmarshalled(in_yaml)}"] if in_yaml else []
            why = f"strict decoding error: {', '.join([*said, *found])}"
            raise _cannot_be_handled(resource, why)
        self._warnings += [*in_yaml, *found]
        self._write_canonically(obj)
        if resource.written_field and json is content:  # YAML is written anew, with sorted keys
            keep_text(obj, resource.written_field, json)
        return obj

    def applied(self, content: bytes) -> Object:
        """Decode a configuration to be applied: only the fields that the client has an opinion on.

        Whether it fits is for the field manager to say.
        """
        body = negotiation.decode_json(content)
        if not isinstance(body, dict):
            raise errors.bad_request("error decoding YAML: the body must be an object")
        if self._validation in (FieldValidation.STRICT, FieldValidation.WARN):
            found = self._repeated_keys
            if not found and negotiation.duplicates(content):
                found = documents.repeated_keys(content)  # what is applied is read as YAML
            found = found[: checks.MOST_UNKNOWN]
            if found and self._validation is FieldValidation.STRICT:
                why = f"error converting YAML to JSON: yaml: {_unmarshalled(found)}"
                raise errors.bad_request(f"error strict decoding YAML: {why}")
            self._warnings += found
        return body

    def patched(self, patch: Patch, current: Object) -> Object:
        """Apply a patch; with ``Strict``, 422 for fields that the result should not have.

        The result may share parts with *current*.
        """
        if self._resource.structural is not None and patch.media_type == STRATEGIC_MERGE_PATCH:
            raise errors.unsupported_media_type(PATCH_TYPES_OF_CUSTOM_RESOURCES)
        changed = patch.apply(current, self._resource)
        echo = _Echo(self._resource, patch, current)
        if patch.media_type == STRATEGIC_MERGE_PATCH:
            changed |= views.type_of(self._resource)  # what it says of that does not count
        else:
            self._check_type(changed, echo)
        obj = typed(self._resource, changed)
        self._warnings += self._corrected_patch(obj, echo)
        self._write_canonically(obj)
        if written := self._resource.written_field:
            if patch.media_type == STRATEGIC_MERGE_PATCH:
                obj = without_text(obj, written)
            else:
                keep_order(obj, written)
        return obj

    def _check_type(self, obj: Json, echo: "_Echo") -> None:
        """Raise a 422 when a patch makes of an object one of another type."""
        said = (obj.get("kind"), obj.get("apiVersion")) if isinstance(obj, dict) else ("", "")
        resource = self._resource
        if said != (resource.kind, resource.group_version) and resource.structural is None:
            raise errors.invalid_patch(echo.text(), errors.not_registered(*said))

    def _corrected_patch(self, obj: Object, echo: "_Echo") -> list[str]:
        """As :meth:`_corrected`, of what a patch made; 422 for what cannot be."""
        try:
            found = self._corrected(obj)
        except _MisfitError as exc:
            raise errors.invalid_patch(echo.text(), echo.misfit() or str(exc)) from None
        if found and self._validation is FieldValidation.STRICT:
            why = f"strict decoding error: {', '.join(found)}"
            raise errors.invalid_patch(echo.text(), why)
        return found

    def _corrected(self, obj: Object) -> list[str]:
        """Drop nulls and fields that nobody knows, and say which these are, unless it is ignored.

        Raises _MisfitError for values of a wrong type.
        """
        if self._resource.structural is None:
            unknown = _correct(self._resource.schema, obj)
        else:
            found = _correct(builtin.meta("ObjectMeta"), obj["metadata"])
            unknown = [f"metadata.{path}" for path in found]
            unknown += pruning.prune(self._resource.structural, obj)
        if self._validation is FieldValidation.IGNORE:
            return []
        return [f"unknown field {quoted(path)}" for path in unknown]

    def _write_canonically(self, obj: Object) -> None:
        if self._resource.structural is None:
            quantities.write_canonically(self._resource.schema, obj)


def _correct(schema: Schema, obj: Object) -> list[str]:
    """Drop the fields that *schema* does not have, and complete the others; return the paths."""
    unknown = []
    if not checks.fits(schema, obj):
        misfit = checks.misfit(schema, obj)
        if misfit is not None:
            raise _MisfitError(misfit)
        unknown = checks.prune(schema, obj)
    complete(schema, obj)
    return unknown


def _unmarshalled(complaints: Sequence[str]) -> str:
    """Return what go-yaml says of all it has to complain about."""
    return "\n".join(["unmarshal errors:", *(f"  {each}" for each in complaints)])


class _Echo(NamedTuple):
    """What a refusal tells of a patch: itself if it is a strategic one, else what it makes."""

    resource: ResourceType
    patch: Patch
    current: Object

    def text(self) -> str:
        if self.patch.media_type == STRATEGIC_MERGE_PATCH:
            return plus_v(_without_directives(self.patch.value, self.current))
        return as_go_escapes(msgspec.json.encode(self._patched()).decode())

    def misfit(self) -> str | None:
        """Return what is wrong with the JSON types of what the patch makes."""
        if self.patch.media_type == STRATEGIC_MERGE_PATCH:
            return checks.unconverted(
                self.resource.schema, self.patch.apply(self.current, self.resource)
            )
        return checks.misfit(self.resource.schema, self._patched())

    def _patched(self) -> Json:
        """Return what the patch makes, in the order in which the API server has it."""
        document = in_go_order(self.resource.schema, self.current)
        if self.resource.structural is not None:
            document = msgspec.json.decode(msgspec.json.encode(self.current, order="sorted"))
        patched = self.patch.apply(document, self.resource)
        if self.patch.media_type == MERGE_PATCH:
            return in_merged_order(patched, self.patch.value)
        return in_patched_order(patched, self.patch.value)


def _without_directives(patch: Json, merged_with: Json) -> Json:
    """Return a strategic merge patch without what the merge has carried out already.

    It takes its directives out of the objects that it merges, and looks at no others.
    """
    match patch, merged_with:
        case dict(), dict():
            return {
                key: _without_directives(value, merged_with.get(key))
                for key, value in patch.items()
                if not key.startswith("$") or value == "delete"
            }
        case list(), [dict() as first, *_]:
            return [_without_directives(item, first) for item in patch]
    return patch


TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def typed(resource: ResourceType, body: Any) -> Object:
    """Return a body as an object of *resource* that says so, with metadata, or raise a 400."""
    if not isinstance(body, dict):
        why = f"json parse error: {not_unmarshalled(body, TYPE_META)}"
        raise errors.unrecognized(resource.kind, why, msgspec.json.encode(body))
    said, kind = body.get("apiVersion") or resource.group_version, body.get("kind") or resource.kind
    if said not in (resource.group_version, *resource.also_read) or kind != resource.kind:
        group, _, version = str(said).rpartition("/")
        is_known = builtin.schema_of(group, version, str(kind)) is not None
        if is_known and said != resource.group_version:
            raise errors.bad_request(
                f"the API version in the data ({said}) does not match "
                f"the expected API version ({resource.group_version})"
            )
        why = errors.not_registered(kind, said)
        if is_known:
            package = group.partition(".")[0] or "core"
            why = (
                f"converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion"
            )
        raise errors.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}'
        )
    metadata = {} if body.get("metadata") is None else body["metadata"]
    return {**body, **views.type_of(resource), "metadata": metadata}


def _cannot_be_handled(resource: ResourceType, why: str) -> errors.StatusError:
    return errors.bad_request(_mishandled(resource, why))


def _mishandled(resource: ResourceType, why: str) -> str:
    kind = resource.kind
    return f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
