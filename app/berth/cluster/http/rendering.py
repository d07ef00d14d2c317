"""Objects as a client wants to see them: whole, as table rows, or their metadata only."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

import msgspec

from berth.cluster import errors, views
from berth.cluster.http.negotiation import JSON, YAML, Representation, Shape, encoded, to_yaml
from berth.cluster.http.reads import Portion
from berth.cluster.http.tables import INCLUDE_OBJECT, as_table, row, table_meta
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin, protobuf
from berth.cluster.schemas.presence import complete
from berth.cluster.schemas.types import Field, Schema
from berth.cluster.storage.stored import Stored
from berth.runtime.clock import Clock

PARTIAL = Schema(
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
    lambda: {"metadata": Field(builtin.meta("ObjectMeta"), default={}, number=(1,))},
)
"""The metadata of an object of any kind."""


END = b"]}"
"""How lists and tables end: with their items, or rows."""


class Renderer:
    """Renders objects of one kind, for one request."""

    def __init__(
        self, resource: ResourceType, form: Representation, *, include_object: str, clock: Clock
    ) -> None:
        """*include_object* is the query parameter of tables; empty: the default.

        406 for a kind as protobuf that has no messages, such as a custom resource.
        """
        if form.media_type == protobuf.MEDIA_TYPE and not resource.has_messages:
            raise errors.not_acceptable((JSON, YAML))
        self._resource = resource
        self._form = form
        self.media_type = form.media_type
        self._type = form.type_of if form.kind else {}
        self._include_object = include_object or "Metadata"
        self._clock = clock
        self._columns_said = False

    @property
    def shared_as(self) -> Hashable | None:
        """What all renderers have in common that say the same of an event; None: they do not."""
        if self._form.shape is Shape.TABLE:
            return None
        return self._resource.group_version, self._form

    @property
    def stream_media_type(self) -> str:
        """The media type of a watch; 406 when there are no frames of that."""
        self._check()
        match self.media_type:
            case "application/json":
                return JSON
            case protobuf.MEDIA_TYPE:
                return f"{protobuf.MEDIA_TYPE};stream=watch"
        raise errors.not_acceptable((JSON, protobuf.MEDIA_TYPE))

    def object(self, stored: Stored) -> bytes:
        """Return one object: the answer to a GET or a write. 406 when a list is wanted."""
        self._check()
        if self._form.kind == "PartialObjectMetadataList":
            why = f"is not a list ({go_name(self._resource)})"
            raise errors.not_of_that_shape(self._form.kind, why)
        return self._object(stored)

    def _check(self) -> None:
        """Raise a 400 for tables that cannot be."""
        if self._form.shape is Shape.TABLE and self._include_object not in INCLUDE_OBJECT:
            raise errors.bad_request(
                f'Unable to convert to Table as requested: includeObject: Invalid value: "'
                f"{self._include_object}\": must be 'Metadata', 'Object', 'None', or empty"
            )

    def _object(self, stored: Stored) -> bytes:
        match self._form.shape:
            case Shape.OBJECT if self.media_type == JSON:
                return views.as_json(self._resource, stored)
            case Shape.OBJECT:
                return self.other(views.as_object(self._resource, stored), self._resource.schema)
            case Shape.PARTIAL:
                partial = views.as_partial(self._resource, stored, self._type["apiVersion"])
                return self._converted(partial)
            case Shape.TABLE:
                return self._converted(self._table_of(stored, with_columns=True))

    def list(self, portion: Portion) -> Iterator[bytes]:
        """Yield a list in pieces: what is before the objects, each of them, what is after.

        In protobuf its length is said first; pieces are empty until that is known.
        406 when one object is wanted.
        """
        self._check()
        if self._form.kind == "PartialObjectMetadata":
            why = f"is a list ({go_name(self._resource)}List)"
            raise errors.not_of_that_shape(self._form.kind, why)
        if self.media_type == protobuf.MEDIA_TYPE:
            yield from self._message_list(portion)
            return
        head = self._list_head(portion)
        if self.media_type == YAML:
            yield from yaml_list(head, map(self._item, portion.objects))
            return
        if not head.endswith(END):
            yield head
            return
        yield head.removesuffix(END)
        for number, stored in enumerate(self._ordered(portion.objects)):
            yield b"," + self._item(stored) if number else self._item(stored)
        yield END

    def _converted(self, json: bytes) -> bytes:
        """Return JSON in the form that is wanted; in protobuf there is only metadata."""
        if self.media_type == JSON:
            return json
        return self.other(msgspec.json.decode(json), PARTIAL)

    def other(self, obj: Object, schema: Schema) -> bytes:
        """Return an object that is not of the kind but says its type: a Status, a Scale."""
        return encoded(obj, schema, self.media_type)

    def frame(self, kind: str, obj: bytes) -> bytes:
        """Return an event of a watch; *obj* is what :meth:`event` or :meth:`bookmark` returned."""
        if self.media_type == protobuf.MEDIA_TYPE:
            return protobuf.watch_frame(kind, obj)
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), obj)

    def _message_list(self, portion: Portion) -> Iterator[bytes]:
        resource = self._resource
        schema = PARTIAL if self._form.shape is Shape.PARTIAL else resource.schema
        items = []
        for object_ in portion.objects:
            items.append(protobuf.list_item(views.as_object(resource, object_), schema))
            yield b""
        list_type = self._list_type
        yield from protobuf.encode_list(
            list_type["apiVersion"], list_type["kind"], portion.metadata, items
        )

    @property
    def _list_type(self) -> Object:
        if self._form.shape is Shape.PARTIAL:
            return {**self._type, "kind": "PartialObjectMetadataList"}
        resource = self._resource
        return {"kind": resource.kind_of_list, "apiVersion": resource.group_version}

    def _list_head(self, portion: Portion) -> bytes:
        """Return the list of *portion* without its items, which are null if they stay so."""
        metadata = portion.metadata
        if self._form.shape is Shape.TABLE:
            table = as_table(
                self._resource, [], list_meta=metadata, group_version=self._type["apiVersion"]
            )
            return msgspec.json.encode(table)
        # The API server collects metadata in a slice that does not exist before its first item.
        items: list[Object] | None = (
            None if self._form.shape is Shape.PARTIAL and not portion.objects else []
        )
        return msgspec.json.encode({**self._list_type, "metadata": metadata, "items": items})

    def _ordered(self, objects: Sequence[Stored]) -> Sequence[Stored]:
        order = self._resource.row_order
        if order is None or self._form.shape is not Shape.TABLE:
            return objects
        return sorted(objects, key=lambda stored: order(stored.decode()))

    def _item(self, stored: Stored) -> bytes:
        match self._form.shape:
            case Shape.OBJECT:
                return views.as_item(self._resource, stored)
            case Shape.PARTIAL:
                return views.as_partial(self._resource, stored, self._type["apiVersion"])
            case Shape.TABLE:
                return self._row(stored)

    def event(self, stored: Stored) -> bytes:
        """Return the object of a watch event; only the first table of a watch says its columns."""
        if self._form.shape is not Shape.TABLE:
            return self._object(stored)
        table = self._table_of(stored, with_columns=not self._columns_said)
        self._columns_said = True
        return table

    def bookmark(self, metadata: Object) -> bytes:
        """Return the object of a bookmark."""
        empty = {"metadata": metadata}
        match self._form.shape:
            case Shape.OBJECT:
                if self._resource.structural is None:
                    complete(self._resource.schema, empty)
                typed = {**views.type_of(self._resource), **empty}
                return self.other(typed, self._resource.schema)
            case Shape.PARTIAL:
                return self.other({**self._type, "metadata": metadata}, PARTIAL)
            case Shape.TABLE:
                if self._resource.structural is None:
                    complete(self._resource.schema, empty)
                version, body = int(metadata["resourceVersion"]), msgspec.json.encode(empty)
                stored = Stored.of_parts(("", ""), "", version, {}, body)
                return self._table_of(stored, with_columns=not self._columns_said)

    def _table_of(self, stored: Stored, *, with_columns: bool) -> bytes:
        """Return the JSON of a table of one object."""
        table = as_table(
            self._resource,
            [self._row(stored)],
            list_meta=table_meta(stored),
            with_columns=with_columns,
            group_version=self._type["apiVersion"],
        )
        return msgspec.json.encode(table)

    def _row(self, stored: Stored) -> bytes:
        group_version = self._type["apiVersion"]
        return row(self._resource, stored, self._include_object, self._clock.now(), group_version)


def pretty(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a list that :meth:`Renderer.list` made as JSON, with the line breaks for people.

    Together they are what ``msgspec.json.format`` makes of all of it.
    """
    parts = iter(pieces)
    first = next(parts)
    if first.endswith(b"}"):
        yield msgspec.json.format(first, indent=2)
        return
    head = msgspec.json.format(first + END, indent=2)
    yield head.removesuffix(b"]\n}")
    is_empty = True
    for part in parts:
        if part == END:
            yield b"]\n}" if is_empty else b"\n  ]\n}"
            return
        item = msgspec.json.format(part.removeprefix(b","), indent=2)
        yield (b"\n    " if is_empty else b",\n    ") + item.replace(b"\n", b"\n    ")
        is_empty = False


def yaml_list(empty: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a list as YAML, in pieces; *empty* is its JSON without *items*, which are JSON, too."""
    parts = msgspec.json.decode(empty)
    name = "rows" if "rows" in parts else "items"
    before = {key: value for key, value in parts.items() if key < name}
    after = {key: value for key, value in parts.items() if key > name}
    yield to_yaml(before)
    is_empty = True
    for item in items:
        yield (b"%b:\n" % name.encode() if is_empty else b"") + to_yaml([msgspec.json.decode(item)])
        is_empty = False
    if is_empty:
        yield to_yaml({name: parts[name]})
    if after:
        yield to_yaml(after)


def go_name(resource: ResourceType) -> str:
    """Return how the API server calls the type of a kind: ``*core.Pod``."""
    return f"*{resource.group.partition('.')[0] or 'core'}.{resource.kind}"
