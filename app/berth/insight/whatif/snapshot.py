"""A cluster at one moment, as a file: all that deciding needs.

::

    {"apiVersion": "berth/v1", "kind": "Snapshot",
     "metadata": {"time": "2026-01-01T00:00:00Z"},
     "config": {"apiVersion": "kubescheduler.config.k8s.io/v1", ...},
     "scheduler": {"now": 1767225600.0, "waiting": [...], ...},
     "items": [{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": ...}, ...]},
               {"apiVersion": "v1", "kind": "PodList", "items": [...]}, ...]}

Objects have the fields that berth reads, see :mod:`berth.scheduler.framework.exports`, and are in
the order that matters: nodes as scheduling goes round them, pods as they came. A kind may come in
several lists. What ``kubectl get ... -o json`` prints is read as well: a List of whole objects of
any kinds, of which others than ours are passed over; it has no configuration. DaemonSets,
PriorityClasses, ResourceQuotas and LimitRanges are read where a List has them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.insight.offline.scenario import Scenario
from berth.insight.whatif.admission import KINDS as ADMISSION_KINDS
from berth.insight.whatif.admission import Policies, read_policies
from berth.insight.whatif.daemons import DAEMON_SET, DAEMON_SET_VERSION
from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.pod import PodSpec
from berth.runtime import gzipped
from berth.runtime.errors import UNREADABLE, UserError
from berth.scheduler.cache.cache import CacheError
from berth.scheduler.config.types import API_VERSION as CONFIGURATION_VERSION
from berth.scheduler.config.types import KIND as CONFIGURATION_KIND
from berth.scheduler.core.scheduler_state import SchedulerState
from berth.scheduler.framework.exports import DECIDING_ANNOTATIONS, exported
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import Listers, kinds_of
from berth.scheduler.framework.pod_reader import PodReader

API_VERSION: Final = "berth/v1"
KIND: Final = "Snapshot"
BATCH: Final = 100
"""Objects that are written before others get a turn; at most so many are in one list."""
MOST_BYTES: Final = 1 << 30
"""Of a compressed file, when it is unpacked."""

SOME_TIME: Final = 1_000_000_000.0

_replace: Final = msgspec.structs.replace


class SnapshotError(UserError):
    """A snapshot that cannot be used; names the source, the kind and the field."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects by kind, and who would decide on them."""

    time: str = ""
    """When it was taken, in UTC as RFC 3339; empty if nobody says."""
    config: Mapping[str, Any] | None = None
    """A KubeSchedulerConfiguration as the API writes it; None: the default one."""
    objects: Mapping[str, Sequence[KubeStruct]] = field(default_factory=dict)
    daemon_sets: Sequence[Mapping[str, Any]] = ()
    """Manifests, where they are known: a scheduler does not watch them."""
    listers: type[Listers] = Listers
    """Declares the kinds of the objects."""
    scheduler: SchedulerState | None = None
    """What the scheduler knew beside the objects; of a running one."""
    annotations: Collection[str] = DECIDING_ANNOTATIONS
    """Those that are written; all others are left out."""
    policies: Policies = field(default_factory=dict)
    """What admission goes by, where it could be read."""

    def emulating(self, release: str) -> "Snapshot":
        """Return it with a configuration like *release* of Kubernetes; "" leaves it as it is."""
        if not release:
            return self
        config = self.config or {"apiVersion": CONFIGURATION_VERSION, "kind": CONFIGURATION_KIND}
        return replace(self, config={**config, "emulatedVersion": release})

    @property
    def now(self) -> float:
        """When it was taken, in seconds since 1970; some time if nobody says."""
        if self.scheduler is not None:
            return self.scheduler.now
        try:
            return datetime.fromisoformat(self.time).timestamp()
        except ValueError:
            return SOME_TIME

    def encode(self) -> Iterator[bytes]:
        """Yield the JSON in pieces, none of which takes more than some milliseconds to make."""
        head: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"time": self.time},
        }
        if self.config is not None:
            head["config"] = dict(self.config)
        if self.scheduler is not None:
            head["scheduler"] = self.scheduler
        yield msgspec.json.encode(head)[:-1] + b',"items":['
        separator = b""
        kinds = kinds_of(self.listers)
        for name, objects in self.objects.items():
            kind = kinds[name]
            typed: dict[str, Any] = {"apiVersion": kind.api_version, "kind": f"{name}List"}
            for start in range(0, len(objects), BATCH):
                batch = [
                    exported(kind, obj, annotations=self.annotations)
                    for obj in objects[start : start + BATCH]
                ]
                yield separator + msgspec.json.encode(typed | {"items": batch})
                separator = b",\n"
        for name, policies in self.policies.items():
            typed = {"apiVersion": ADMISSION_KINDS[name].api_version, "kind": f"{name}List"}
            yield separator + msgspec.json.encode(typed | {"items": policies})
            separator = b",\n"
        if self.daemon_sets:
            typed = {"apiVersion": DAEMON_SET_VERSION, "kind": f"{DAEMON_SET}List"}
            yield separator + msgspec.json.encode(
                typed | {"items": [*map(_exported, self.daemon_sets)]}
            )
        yield b"]}\n"

    def scenario(self, *, read_pod: PodReader | None = None) -> Scenario:
        """Return a new cluster in memory of all objects, in their order.

        *read_pod* reads each pod as it counts for the configuration that decides.
        Raises SnapshotError for pods that cannot be told apart.
        """
        scenario = Scenario(listers=self.listers(), read_pod=read_pod)
        try:
            for obj in chain(*self.objects.values()):
                scenario.take_in(obj)
        except CacheError as exc:
            raise SnapshotError(str(exc)) from exc
        scenario.cache.refresh_order()
        return scenario


class _TemplateSpec(PodSpec, frozen=True):
    priority_class_name: str = ""


class _Template(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _TemplateSpec = _TemplateSpec()


class _DaemonSetSpec(KubeStruct, frozen=True):
    template: _Template = _Template()


class _DaemonSet(KubeStruct, frozen=True):
    """What is written of a DaemonSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _DaemonSetSpec = _DaemonSetSpec()


def _exported(manifest: Mapping[str, Any]) -> _DaemonSet:
    """Return what of a DaemonSet's *manifest* may be written; nothing if it cannot be read."""
    try:
        daemon_set = msgspec.convert(manifest, _DaemonSet)
    except UNREADABLE:
        return _DaemonSet()
    template = daemon_set.spec.template
    template = _replace(template, metadata=_replace(template.metadata, annotations={}))
    meta = _replace(daemon_set.metadata, annotations={})
    return _DaemonSet(meta, _DaemonSetSpec(template))


class _Document(msgspec.Struct, rename="camel"):
    """The outside; what is in it is decoded when its kind is known."""

    kind: str = ""
    api_version: str = ""
    metadata: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    scheduler: SchedulerState | None = None
    items: tuple[msgspec.Raw, ...] | None = None


class _Item(msgspec.Struct):
    kind: str = ""
    items: msgspec.Raw = msgspec.Raw(b"[]")


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_item = msgspec.json.Decoder(_Item).decode
_decode_one = msgspec.json.Decoder(dict[str, Any]).decode
_decode_raw = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
_decode_all = msgspec.json.Decoder(list[dict[str, Any]] | None).decode


def load(path: Path) -> Snapshot:
    """Read a file, compressed or not; SnapshotError if it is no snapshot."""
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise SnapshotError(f"{path}: {exc.strerror}") from exc
    return decode(data, source=str(path))


def decode(data: bytes, *, source: str, listers: type[Listers] = Listers) -> Snapshot:
    """Read the bytes of a snapshot, or of a List; *source* names them in errors.

    Objects of the kinds that *listers* declares are read. Raises SnapshotError.
    """
    try:
        document = _decode_document(_unpacked(data))
    except (gzipped.GzipError, *UNREADABLE) as exc:
        raise SnapshotError(f"{source}: no snapshot: {exc}") from exc
    is_ours = (document.api_version, document.kind) == (API_VERSION, KIND)
    if not is_ours and not document.kind.endswith("List"):
        got = f"apiVersion {document.api_version!r}, kind {document.kind!r}"
        raise SnapshotError(f"{source}: a {API_VERSION} {KIND} or a List is needed, got {got}")
    objects: dict[str, list[Any]] = {DAEMON_SET: []}
    for kind, listed in _read_all(document, source, kinds_of(listers)):
        objects.setdefault(kind, []).extend(listed)
    daemon_sets = tuple(objects.pop(DAEMON_SET))
    policies = {kind: objects.pop(kind) for kind in ADMISSION_KINDS if kind in objects}
    time = (document.metadata or {}).get("time", "") if is_ours else ""
    config = document.config if is_ours else None
    scheduler = document.scheduler if is_ours else None
    return Snapshot(str(time), config, objects, daemon_sets, listers, scheduler, policies=policies)


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(gzipped.MAGIC):
        return data
    return gzipped.unpacked(data, most=MOST_BYTES)


def _read_all(
    document: _Document, source: str, kinds: Mapping[str, Kind[Any]]
) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yield kind and objects, list by list."""
    of_list = document.kind.removesuffix("List")
    for index, raw in enumerate(document.items or ()):
        where = f"{source}: items[{index}]"
        try:
            item = _decode_item(raw)
            name = item.kind.removesuffix("List") or of_list
            where = f"{where}, {name}"
            kind, is_list = kinds.get(name), item.kind.endswith("List")
            if kind is not None:
                listed = kind.decode_list(item.items) if is_list else [kind.decode_bare(raw)]
                yield name, listed or ()
            elif name in ADMISSION_KINDS:
                items = _decode_raw(item.items) if is_list else [raw]
                yield name, read_policies(ADMISSION_KINDS[name], items or ())
            elif name == DAEMON_SET:
                yield name, (_decode_all(item.items) if is_list else [_decode_one(raw)]) or ()
        except UNREADABLE as exc:
            raise SnapshotError(f"{where}: {exc}") from exc
