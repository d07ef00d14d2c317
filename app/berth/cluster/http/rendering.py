"""Objects as a client wants to see them: whole, as table rows, or their metadata only."""

from collections.abc import Hashable, Iterator, Sequence

import msgspec

from berth.clock import Clock
from berth.cluster import errors, views
from berth.cluster.http.negotiation import JSON, YAML, Representation, Shape, encoded
from berth.cluster.http.reads import Portion
from berth.cluster.http.tables import INCLUDE_OBJECT, as_table, row
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin, protobuf
from berth.cluster.schemas.types import Field, Schema
from berth.cluster.storage.store import Stored

PARTIAL = Schema(
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
    lambda: {"metadata": Field(builtin.meta("ObjectMeta"), default={}, number=(1,))},
)
"""The metadata of an object of any kind."""

NO_ROWS: Object = {"columnDefinitions": None, "rows": []}

END = b"]}"
"""How lists and tables end: with their items, or rows."""


class Renderer:
    """Renders objects of one kind, for one request."""

    def __init__(
        self, resource: ResourceType, form: Representation, *, include_object: str, clock: Clock
    ) -> None:
        """*include_object* is the query parameter of tables; empty: the default. 400 if unknown."""
        if form.shape is Shape.TABLE and include_object not in ("", *INCLUDE_OBJECT):
            raise errors.bad_request(
                f'Unable to convert to Table as requested: includeObject: Invalid value: "'
                f"{include_object}\": must be 'Metadata', 'Object', 'None', or empty"
            )
        self._resource = resource
        self._form = form
        self._type = form.type_of
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
    def media_type(self) -> str:
        return self._form.media_type

    def object(self, stored: Stored) -> bytes:
        """Return one object: the answer to a GET or a write. 406 when a list is wanted."""
        if self._form.kind == "PartialObjectMetadataList":
            why = f"is not a list ({go_name(self._resource)})"
            raise errors.not_of_that_shape(self._form.kind, why)
        return self._object(stored)

    def _object(self, stored: Stored) -> bytes:
        match self._form.shape:
            case Shape.OBJECT if self.media_type == JSON:
                return views.as_json(self._resource, stored)
            case Shape.OBJECT:
                return self.other(views.as_object(self._resource, stored), self._resource.schema)
            case Shape.PARTIAL:
                partial = {**self._type, "metadata": stored.decode()["metadata"]}
                return self.other(partial, PARTIAL)
            case Shape.TABLE:
                return self.other(self._table([stored], None), PARTIAL)

    def list(self, portion: Portion) -> Iterator[bytes]:
        """Yield a list in pieces: what is before the objects, each of them, what is after.

        In protobuf the whole comes last, for its length is said first; until then pieces are empty.
        406 when one object is wanted.
        """
        if self._form.kind == "PartialObjectMetadata":
            why = f"is a list ({go_name(self._resource)}List)"
            raise errors.not_of_that_shape(self._form.kind, why)
        if self.media_type == protobuf.MEDIA_TYPE:
            yield from self._message_list(portion)
            return
        pieces = self._json_list(portion)
        if self.media_type == YAML:
            whole = msgspec.json.decode(b"".join(pieces))
            yield self.other(whole, PARTIAL)
            return
        yield from pieces

    def _json_list(self, portion: Portion) -> Iterator[bytes]:
        yield self._list_head(portion.metadata).removesuffix(END)
        for number, stored in enumerate(portion.objects):
            yield b"," + self._item(stored) if number else self._item(stored)
        yield END

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
        for each in portion.objects:
            items.append(protobuf.message_of(views.as_object(resource, each), schema))
            yield b""
        list_type = self._list_type
        yield protobuf.encode_list(
            list_type["apiVersion"], list_type["kind"], portion.metadata, items
        )

    @property
    def _list_type(self) -> Object:
        if self._form.shape is Shape.PARTIAL:
            return {**self._type, "kind": "PartialObjectMetadataList"}
        resource = self._resource
        return {"kind": f"{resource.kind}List", "apiVersion": resource.group_version}

    def _list_head(self, metadata: Object) -> bytes:
        """Return an empty list."""
        if self._form.shape is Shape.TABLE:
            return msgspec.json.encode(self._table([], metadata))
        return msgspec.json.encode({**self._list_type, "metadata": metadata, "items": []})

    def _item(self, stored: Stored) -> bytes:
        match self._form.shape:
            case Shape.OBJECT:
                return views.as_item(self._resource, stored)
            case Shape.PARTIAL:
                return msgspec.json.encode({"metadata": stored.decode()["metadata"]})
            case Shape.TABLE:
                obj = views.as_object(self._resource, stored)
                group_version = self._type["apiVersion"]
                now = self._clock.now()
                return msgspec.json.encode(
                    row(self._resource, obj, self._include_object, now, group_version)
                )

    def event(self, stored: Stored) -> bytes:
        """Return the object of a watch event; only the first table of a watch says its columns."""
        if self._form.shape is not Shape.TABLE:
            return self._object(stored)
        table = self._table([stored], None, with_columns=not self._columns_said)
        self._columns_said = True
        return msgspec.json.encode(table)

    def bookmark(self, metadata: Object) -> bytes:
        """Return the object of a bookmark."""
        match self._form.shape:
            case Shape.OBJECT:
                bookmark = {**views.type_of(self._resource), "metadata": metadata}
                return self.other(bookmark, self._resource.schema)
            case Shape.PARTIAL:
                return self.other({**self._type, "metadata": metadata}, PARTIAL)
            case Shape.TABLE:
                table = {**self._type, "metadata": metadata, **NO_ROWS}
                return msgspec.json.encode(table)

    def _table(
        self, objects: Sequence[Stored], list_meta: Object | None, *, with_columns: bool = True
    ) -> Object:
        return as_table(
            self._resource,
            [views.as_object(self._resource, stored) for stored in objects],
            include_object=self._include_object,
            list_meta=list_meta,
            now=self._clock.now(),
            with_columns=with_columns,
            group_version=self._type["apiVersion"],
        )


def go_name(resource: ResourceType) -> str:
    """Return how the API server calls the type of a kind: ``*core.Pod``."""
    return f"*{resource.group.partition('.')[0] or 'core'}.{resource.kind}"
