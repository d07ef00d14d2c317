"""Lists: which objects, in what portions, from which moment."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from berth.cluster import errors, views
from berth.cluster.http.field_selectors import FieldSelector, parse_field_selector
from berth.cluster.options import Query, number, whole_number
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import ExpiredError, Key, Store, Stored
from berth.objects.selector_text import parse_label_selector
from berth.objects.selectors import Selector

TOO_OLD = "The provided continue parameter is too old to display a consistent list result."


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind a client wants to see."""

    resource: ResourceType
    namespace: str = ""
    """Empty: all."""
    labels: Selector | None = None
    fields: FieldSelector = field(default_factory=FieldSelector)

    @property
    def is_all(self) -> bool:
        """Whether there is no selector."""
        return self.labels is None and not self.fields.requirements

    @property
    def is_everything(self) -> bool:
        """Whether there is no limit at all."""
        return self.is_all and not self.namespace

    def takes(self, stored: Stored) -> bool:
        """Whether an object, in the state that is given, is among them."""
        if self.namespace and stored.key[0] != self.namespace:
            return False
        if self.labels is not None and not self.labels.matches(stored.labels):
            return False
        if not self.fields.requirements:
            return True
        return self.fields.matches(views.fields_of(self.resource, stored, self.fields.names))


def selection(resource: ResourceType, namespace: str, query: Query) -> Selection:
    """Read ``labelSelector`` and ``fieldSelector``; 400 when one is malformed."""
    label_text, field_text = query.get("labelSelector", ""), query.get("fieldSelector", "")
    try:
        labels = parse_label_selector(label_text) if label_text else None
    except ValueError as exc:
        raise errors.bad_request(f"unable to parse requirement: {exc}") from exc
    try:
        fields = parse_field_selector(field_text, views.selectable(resource))
    except ValueError as exc:
        raise errors.bad_request(str(exc)) from exc
    return Selection(resource, namespace, labels, fields)


@dataclass(frozen=True, slots=True)
class Portion:
    """One page of a list."""

    objects: Sequence[Stored]
    version: int
    """Of the whole list."""
    continue_token: str = ""
    remaining: int | None = None
    """How many are left after this page, where that is cheap to say."""

    @property
    def metadata(self) -> Object:
        """The ``metadata`` of the list."""
        found: Object = {"resourceVersion": str(self.version)}
        if self.continue_token:
            found["continue"] = self.continue_token
            if self.remaining is not None:
                found["remainingItemCount"] = self.remaining
        return found


class _Token(msgspec.Struct, rename={"version": "rv", "api": "v"}):
    """Where a list goes on: the state it shows, and the last key it gave out."""

    version: int
    start: Key
    api: str = "berth/v1"


def list_objects(store: Store, wanted: Selection, query: Query) -> Portion:
    """Return the page that ``limit``, ``continue`` and ``resourceVersion`` ask for.

    Pages of one list all show the state of the first, as long as the log reaches back to it.
    """
    key, limit = wanted.resource.storage_key, number(query, "limit") or 0
    if query.get("continue"):
        token = _decode_token(query["continue"])
        version = token.version
        try:
            objects: Sequence[Stored] = store.list_at(key, wanted.namespace, version)
        except ExpiredError as exc:
            raise errors.expired(TOO_OLD) from exc
        objects = [stored for stored in objects if stored.key > token.start]
    else:
        objects, version = _at_asked_version(store, key, wanted.namespace, query)
    if not wanted.is_all:
        objects = [stored for stored in objects if wanted.takes(stored)]
    if not limit or len(objects) <= limit:
        return Portion(objects, version)
    page = objects[:limit]
    token = _Token(version=version, start=page[-1].key)
    remaining = len(objects) - limit if wanted.is_all else None
    return Portion(page, version, _encode_token(token), remaining)


def version_of(query: Query) -> int | None:
    """Return ``resourceVersion``; None when nothing or "0", which is any state, is said."""
    text = query.get("resourceVersion", "")
    return (whole_number("resourceVersion", text) or None) if text else None


def _at_asked_version(
    store: Store, key: str, namespace: str, query: Query
) -> tuple[Sequence[Stored], int]:
    asked = version_of(query)
    if asked is not None and asked > store.version:
        raise errors.too_large_version(asked, store.version)
    if asked is None or query.get("resourceVersionMatch") != "Exact":
        return store.list(key, namespace), store.version
    try:
        return store.list_at(key, namespace, asked), asked
    except ExpiredError as exc:
        raise errors.expired(str(exc)) from exc


def _encode_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> _Token:
    padded = text + "=" * (-len(text) % 4)
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (ValueError, binascii.Error, msgspec.MsgspecError) as exc:
        raise errors.bad_request("continue key is not valid: it is not one of ours") from exc
