"""What a watch sends, as far as it must be understood before the object is decoded."""

from typing import Final

import msgspec

from app.objects.meta import KubeStruct, ListHead

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends the initial state of a streamed list."""


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch. ``type`` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class BookmarkMeta(KubeStruct, frozen=True, gc=False):
    resource_version: str
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Bookmark(KubeStruct, frozen=True, gc=False):
    """The object of a BOOKMARK: a version, and whether the initial state is complete with it."""

    metadata: BookmarkMeta

    @property
    def ends_initial_state(self) -> bool:
        return self.metadata.annotations.get(INITIAL_EVENTS_END) == "true"


decode_watch_event = msgspec.json.Decoder(WatchEvent).decode
decode_bookmark = msgspec.json.Decoder(Bookmark).decode
decode_list = msgspec.json.Decoder(ListHead).decode
