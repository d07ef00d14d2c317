"""Objects as a client wants to see them: whole, as table rows, or their metadata only."""

from collections.abc import Iterator, Sequence

import msgspec

from berth.clock import Clock
from berth.cluster import errors, views
from berth.cluster.http.negotiation import JSON, Representation, encoded
from berth.cluster.http.reads import Portion
from berth.cluster.http.tables import as_table, row
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import protobuf
from berth.cluster.schemas.types import Schema
from berth.cluster.storage.store import Stored

META_VERSION = "meta.k8s.io/v1"
PARTIAL: Object = {"kind": "PartialObjectMetadata", "apiVersion": META_VERSION}
PARTIAL_LIST: Object = {"kind": "PartialObjectMetadataList", "apiVersion": META_VERSION}
TABLE: Object = {"kind": "Table", "apiVersion": META_VERSION, "columnDefinitions": None, "rows": []}


END = b"]}"
"""How lists and tables end: with their items, or rows."""


class Renderer:
    """Renders objects of one kind, for one request."""

    def __init__(
        self, resource: ResourceType, form: Representation, *, include_object: str, clock: Clock
    ) -> None:
        """*include_object* is the query parameter of tables; empty: the default.

        406 for a custom resource as protobuf: it has no messages.
        """
        if form is Representation.PROTOBUF and resource.structural is not None:
            raise errors.not_acceptable()
        self._resource = resource
        self._form = form
        self._include_object = include_object or "Metadata"
        self._clock = clock
        self._columns_said = False

    @property
    def media_type(self) -> str:
        return protobuf.MEDIA_TYPE if self._form is Representation.PROTOBUF else JSON

    def object(self, stored: Stored) -> bytes:
        """Return one object: the answer to a GET or a write."""
        match self._form:
            case Representation.OBJECT:
                return views.as_json(self._resource, stored)
            case Representation.PROTOBUF:
                return self.other(views.as_object(self._resource, stored), self._resource.schema)
            case Representation.PARTIAL:
                return msgspec.json.encode({**PARTIAL, "metadata": stored.decode()["metadata"]})
            case Representation.TABLE:
                return msgspec.json.encode(self._table([stored], None))

    def list(self, portion: Portion) -> Iterator[bytes]:
        """Yield a list in pieces: what is before the objects, each of them, what is after.

        In protobuf it is one piece: its length is said first.
        """
        if self._form is Representation.PROTOBUF:
            yield self._message_list(portion)
            return
        yield self._list_head(portion.metadata).removesuffix(END)
        for number, stored in enumerate(portion.objects):
            yield b"," + self._item(stored) if number else self._item(stored)
        yield END

    def other(self, obj: Object, schema: Schema) -> bytes:
        """Return an object that is not of the kind but says its type: a Status, a Scale."""
        return encoded(obj, schema, self._form)

    def frame(self, kind: str, obj: bytes) -> bytes:
        """Return an event of a watch; *obj* is what :meth:`event` or :meth:`bookmark` returned."""
        if self._form is Representation.PROTOBUF:
            return protobuf.watch_frame(kind, obj)
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), obj)

    def _message_list(self, portion: Portion) -> bytes:
        resource = self._resource
        return protobuf.encode_list(
            resource.group_version,
            resource.kind_of_list,
            portion.metadata,
            (
                protobuf.message_of(views.as_object(resource, each), resource.schema)
                for each in portion.objects
            ),
        )

    def _list_head(self, metadata: Object) -> bytes:
        """Return an empty list."""
        match self._form:
            case Representation.OBJECT | Representation.PROTOBUF:
                resource = self._resource
                head = {"kind": resource.kind_of_list, "apiVersion": resource.group_version}
            case Representation.PARTIAL:
                head = PARTIAL_LIST
            case Representation.TABLE:
                return msgspec.json.encode(self._table([], metadata))
        return msgspec.json.encode({**head, "metadata": metadata, "items": []})

    def _item(self, stored: Stored) -> bytes:
        match self._form:
            case Representation.OBJECT | Representation.PROTOBUF:
                return views.as_item(self._resource, stored)
            case Representation.PARTIAL:
                return msgspec.json.encode({"metadata": stored.decode()["metadata"]})
            case Representation.TABLE:
                obj = views.as_object(self._resource, stored)
                return msgspec.json.encode(
                    row(self._resource, obj, self._include_object, self._clock.now())
                )

    def event(self, stored: Stored) -> bytes:
        """Return the object of a watch event; only the first table of a watch says its columns."""
        if self._form is not Representation.TABLE:
            return self.object(stored)
        table = self._table([stored], None, with_columns=not self._columns_said)
        self._columns_said = True
        return msgspec.json.encode(table)

    def bookmark(self, metadata: Object) -> bytes:
        """Return the object of a bookmark."""
        types = {Representation.PARTIAL: PARTIAL, Representation.TABLE: TABLE}
        type_of = types.get(self._form) or views.type_of(self._resource)
        return self.other({**type_of, "metadata": metadata}, self._resource.schema)

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
        )
