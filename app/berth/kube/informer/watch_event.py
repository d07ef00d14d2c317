"""Watch events, as far as they must be understood before the object is decoded."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from berth.kube.objects.meta import KubeStruct, ListHead
from berth.kube.objects.nesting import outline

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends the initial state of a streamed list."""


T = TypeVar("T")

CHANGES: Final = ("ADDED", "MODIFIED", "DELETED")


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One line of a watch. ``type`` is one of :data:`CHANGES`, BOOKMARK or ERROR.

    ``object`` is :class:`msgspec.Raw`, or an outline: a struct of as much of it as is told from
    the line, in which all else is raw.
    """

    type: str
    object: T


class BookmarkMeta(KubeStruct, frozen=True, gc=False):
    resource_version: str
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Bookmark(KubeStruct, frozen=True, gc=False):
    """The object of a BOOKMARK: a version, and whether the initial state is complete with it."""

    metadata: BookmarkMeta

    @property
    def ends_initial_state(self) -> bool:
        return self.metadata.annotations.get(INITIAL_EVENTS_END) == "true"


_decode_event = msgspec.json.Decoder(WatchEvent[msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(ListHead).decode
decode_bookmark = msgspec.json.Decoder(Bookmark).decode


def decode_watch_event(line: bytes) -> WatchEvent[msgspec.Raw]:
    """Decode one line of a watch, however deeply its object is nested."""
    try:
        return _decode_event(line)
    except RecursionError:
        shell, inner = outline(line, levels=1)
        event = _decode_event(shell)
        return WatchEvent(event.type, _taken(event.object, inner))


def event_decoder(outline: type[object]) -> Callable[[bytes], WatchEvent[Any]]:
    """Return a function that decodes lines as :func:`decode_watch_event` does, and changes at once
    to *outline*, if they are as it says."""
    decode = msgspec.json.Decoder(WatchEvent[outline]).decode  # type: ignore[valid-type]

    def decoded(line: bytes) -> WatchEvent[Any]:
        try:
            event = decode(line)
        except (msgspec.MsgspecError, RecursionError):
            return decode_watch_event(line)
        return event if event.type in CHANGES else decode_watch_event(line)

    return decoded


def decode_list(data: bytes) -> ListHead:
    """Decode a list, however deeply its items are nested."""
    try:
        return _decode_list(data)
    except RecursionError:
        shell, inner = outline(data, levels=2)
        head = _decode_list(shell)
        return ListHead(head.metadata, tuple(_taken(item, inner) for item in head.items))


def _taken(value: msgspec.Raw, inner: Sequence[bytes]) -> msgspec.Raw:
    """Return what *value* stands for in an outline; scalars stand for themselves."""
    text = bytes(value)
    return msgspec.Raw(inner[int(text)]) if text.isdigit() and int(text) < len(inner) else value
