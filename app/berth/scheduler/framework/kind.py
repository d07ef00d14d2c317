"""Kinds of API objects, as far as needed to watch and to read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import GenericAlias
from typing import Any, Final, Generic, TypeVar

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.partial import Unread, read_partly
from berth.kube.objects.partial_objects import PartRule, no_part, part_of_node, part_of_pod
from berth.kube.objects.pod import Pod
from berth.kube.objects.raw import decoder
from berth.scheduler.framework.events import ActionType, EventResource

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, eq=False)
class Kind(Generic[T]):
    """Objects of *type*, which are listed and watched at *path*.

    The type has the name of the kind in manifests, a field ``metadata``, and those further fields
    that are read: nothing else of an object is kept.
    """

    path: str
    type: type[T]
    namespaced: bool = field(default=True, kw_only=True)
    event: EventResource | str | None = field(default=None, kw_only=True)
    """What its changes are called as cluster events; None: no pod waits for any."""
    wakes: ActionType = field(default=ActionType(0), kw_only=True)
    """The changes, of add, update and delete, that waiting pods are asked about (spec §11.1)."""
    partly: PartRule = field(default=no_part, kw_only=True)
    """What of an object counts that does not decode as a whole."""
    params: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Selects what is listed and watched, such as ``fieldSelector``."""
    feature: str = field(default="", kw_only=True)
    """The feature gate that must be on for the kind to be watched; empty: none."""
    versions: Sequence[str] = field(default=(), kw_only=True)
    """Those of its group in which it can be read, if *path* is not the only one. Of those that an
    API server serves, the first counts. Objects that have a field ``api_version`` say which."""
    conversions: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict, kw_only=True)
    """By version, what makes decoded JSON of *path*'s version of that of an object in it; versions
    that are alike are missing."""
    without: str = field(default="", kw_only=True)
    """What follows where an API server does not serve it; empty: there are no such objects."""
    decoder: Callable[[bytes], T] | None = field(default=None, kw_only=True)
    """Decodes the JSON of one object; None: as its type says."""
    without_opaque: Callable[[T], T] | None = field(default=None, kw_only=True)
    """Returns an object without what only drivers read of it, which nobody may see; None: there is
    no such thing in it."""

    @property
    def name(self) -> str:
        """The kind in manifests, such as ``Pod``."""
        return self.type.__name__

    def is_like(self, other: "Kind[Any]") -> bool:
        """Whether both read the same objects in the same way.

        A file of plugins that was loaded again declares its kinds again.
        """
        return self is other or (
            (self.path, self.name, self.params, self.type.__struct_fields__)
            == (other.path, other.name, other.params, other.type.__struct_fields__)
        )

    @property
    def paths(self) -> Sequence[str]:
        """Where an API server may have it, the best first."""
        if not self.versions:
            return (self.path,)
        return [f"/apis/{self.group}/{version}/{self.resource}" for version in self.versions]

    def conversion(self, path: str) -> Callable[[Any], Any] | None:
        """Return what makes readable what an API server has at *path*; None: it is as it is."""
        return self.conversions.get(path.split("/")[-2])

    @property
    def api_version(self) -> str:
        """``apiVersion`` in manifests, such as ``v1`` and ``apps/v1``."""
        _, _, version_and_plural = self.path.lstrip("/").partition("/")
        return version_and_plural.rpartition("/")[0]

    @property
    def group(self) -> str:
        """The API group, empty for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """The kind in paths and roles, such as ``pods``."""
        return self.path.rpartition("/")[2]

    @cached_property
    def decode(self) -> Callable[[bytes], T]:
        """Decodes the JSON of one object, and keeps it where the type has a field ``raw`` for it.

        Raises msgspec.DecodeError.
        """
        if self.decoder is not None:
            return self.decoder
        return decoder(self.type) if self.keeps_raw else self.decode_bare

    @cached_property
    def decode_bare(self) -> Callable[[bytes], T]:
        """Decodes the JSON of one object, which is not kept."""
        return msgspec.json.Decoder(self.type).decode

    @cached_property
    def decode_list(self) -> Callable[[bytes], list[T] | None]:
        """Decodes a JSON array of objects, which is not kept; null is Go's empty one."""
        return msgspec.json.Decoder(GenericAlias(list, (self.type,)) | None).decode

    def decode_partly(self, data: bytes, last: T | None) -> tuple[T, Sequence[Unread]]:
        """Return what counts of an object that does not decode as a whole, and what was not read.

        *last* is the last known state. Raises ValueError or msgspec.DecodeError if nothing counts.
        """
        obj, unread = read_partly(data, self.type, last)
        if self.keeps_raw:
            obj = msgspec.structs.replace(obj, raw=data)
        return (self.partly(obj, unread) if unread else obj), unread

    @property
    def keeps_version(self) -> bool:
        """Whether objects say in which version they were read."""
        return "api_version" in self.type.__struct_fields__

    @cached_property
    def keeps_raw(self) -> bool:
        """Whether objects carry what they were decoded from, because they are written back."""
        return "raw" in self.type.__struct_fields__


NODES: Final = Kind(
    "/api/v1/nodes", Node, namespaced=False, event=EventResource.NODE, partly=part_of_node
)
PODS: Final = Kind(
    "/api/v1/pods",
    Pod,
    event=EventResource.POD,
    partly=part_of_pod,
    # Finished pods do not exist for the scheduler (spec §11.1).
    params={"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
)
