"""The workload of a recording: what happened to its cluster, apart from what its scheduler did."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.insight.recording import lines
from berth.insight.recording.files import LineError
from berth.insight.recording.kinds import by_name, kind_name
from berth.insight.recording.runs import RecordedRun, runs
from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod, PodStatus
from berth.kube.objects.pod_group import PodGroup
from berth.kube.objects.storage import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.scheduler.framework.kind import PODS
from berth.scheduler.framework.listers import KINDS
from berth.tools.lab.chance import Chance
from berth.tools.lab.errors import LabError
from berth.tools.lab.types import RecordingSource
from berth.tools.lab.workload import MEASUREMENTS, WHOLE, Arrival, Change, Part, pod_owners, ticks

LATEST: Final = 1e11
"""Seconds since 1970; a time after it is no time."""
PODS_NAME: Final = kind_name(PODS)
_KINDS: Final = by_name({kind: kind for kind in KINDS.values()})
_WRITTEN_BY_SCHEDULERS: Final = (ResourceClaim, PodGroup)
"""What they write to these is no part of the workload, and hardly anything else changes."""

_replace: Final = msgspec.structs.replace


class _Profile(msgspec.Struct, rename="camel"):
    scheduler_name: str = "default-scheduler"


class _Configuration(msgspec.Struct):
    profiles: tuple[_Profile, ...] = (_Profile(),)


class RecordingWorkload:
    """The nodes, pods and other objects of a recording, which come, change and go as they did.

    It begins at the first attempt, with what there is then. A part of it begins at the first
    attempt of a time in which as many pods come as in the others.
    """

    is_timed = True
    resource = ""

    def __init__(self, source: RecordingSource, beside: Path, part: Part = WHOLE) -> None:
        """Read the files; RecordingError or LabError names what is wrong."""
        files = tuple(beside / name for name in source.files)
        if part == WHOLE:
            history = _history(files)
        else:
            bounds = _bounds(files, part.of)
            history = _history(files, bounds[part.number], bounds[part.number + 1])
        self.warnings: Sequence[str] = history.warnings
        self.length = history.since_begin(history.now)
        self.interval = max(round(self.length / MEASUREMENTS), 1)
        self.length = max(self.length, self.interval)  # so that the shortest is measured, too
        self.nodes: Sequence[Node] = [obj for obj in history.first if isinstance(obj, Node)]
        self.objects: Sequence[Any] = [obj for obj in history.first if not isinstance(obj, Node)]
        self.changes: Sequence[Change] = history.changes
        self._arrivals = [pod.arrival(history) for pod in history.pods]
        self.pods: Sequence[Pod] = [arrival.pod for arrival in self._arrivals]
        for what, objects in (("nodes", self.nodes), ("pods", self.pods)):
            if not objects:
                raise LabError(f"{', '.join(source.files)}: no {what}")

    def arrivals(self, _chance: Chance) -> Sequence[Arrival]:
        return self._arrivals


@dataclass(slots=True, eq=False)
class _RecordedPod:
    """A pod from when it was first heard of."""

    pod: Pod
    """Has a node if it had one when the workload begins to know of it."""
    came: float
    told: Pod
    """What was last told of it, under the name that it has here."""
    started: float | None = None
    """When it had a node."""
    ended: float | None = None

    def arrival(self, history: "_History") -> Arrival:
        if self.ended is None:
            return Arrival(self.pod, history.since_begin(self.came))
        ended = history.since_begin(self.ended)
        if self.started is None:
            return Arrival(self.pod, history.since_begin(self.came), until=ended)
        lifetime = ended - history.since_begin(self.started)
        return Arrival(self.pod, history.since_begin(self.came), lifetime)


def _history(files: Sequence[Path], begin: float = 0.0, end: float = LATEST) -> "_History":
    history = _History(begin, end)
    for run in runs(files):
        history.read(run)
    return history


@lru_cache
def _bounds(files: tuple[Path, ...], parts: int) -> Sequence[float]:
    """Return where *parts* begin, and where the last one ends, in seconds since 1970."""
    came = _history(files).came
    if len(came) < parts:
        names = ", ".join(map(str, files))
        raise LabError(f"{names}: {len(came)} pods come: {parts} or more are needed")
    inner = [came[len(came) * number // parts] for number in range(1, parts)]
    return [0.0, *inner, LATEST]


class _History:
    """Follows the lines of a recording."""

    def __init__(self, begin: float, end: float) -> None:
        """Of what comes to be after *end* nothing is known, but when pods end that came before."""
        self._not_before, self._not_after = begin, end
        self.now = 0.0
        self.warnings: list[str] = []
        """Why what was read may not be all, or not the truth."""
        self.first: list[Any] = []
        """What there is at the first attempt, beside pods."""
        self.changes: list[Change] = []
        """Those after it; also of pods, but not that they come and go."""
        self.pods: list[_RecordedPod] = []
        self._begin: float | None = None
        self._schedulers: set[str] = set()
        self._current: dict[str, _RecordedPod] = {}
        self._names: dict[str, int] = {}
        self._objects: dict[tuple[type, str], Any] = {}
        self._delayed: set[str] = set()
        """Claims that get a volume when a pod gets a node, which is the scheduler's choice."""

    def read(self, run: RecordedRun) -> None:
        """Take in all lines of *run*."""
        first = (run.files[0], run.header)
        for file, line in chain([first], run.read()):
            with file.naming_line():
                self._take(line)
        self.warnings += run.warnings()
        if self._begin is None:
            self.first = [*self._objects.values()]

    def since_begin(self, t: float) -> float:
        begin = self.now if self._begin is None else self._begin
        return ticks(max(t - begin, 0.0))

    def _take(self, line: lines.Step) -> None:
        if not 0 <= line.t < LATEST:
            raise LineError(f"t: {line.t!r}: must be seconds since 1970")
        if line.t >= self._not_after:
            self._take_end(line)
            return
        self.now = max(self.now, line.t)
        match line:
            case lines.Header() | lines.Configured():
                config = msgspec.convert(line.config, _Configuration)
                self._schedulers |= {profile.scheduler_name for profile in config.profiles}
            case lines.Added() | lines.Updated() | lines.Deleted():
                kind = _KINDS.get(line.kind)
                if kind is None:
                    return
                obj = kind.decode(bytes(line.object))
                is_gone = isinstance(line, lines.Deleted)
                if kind is not PODS:
                    self._tell(obj, is_gone=is_gone)
                elif is_gone or obj.is_terminated:
                    self._end_pod(obj.key)
                else:
                    self._tell_pod(obj)
            case lines.Attempt() if self._begin is None and line.t >= self._not_before:
                self._begin = self.now
                objects, self._objects = self._objects, {}
                # Whether a claim is delayed depends on its class.
                for obj in sorted(objects.values(), key=_place):
                    self._tell(obj)
                self.first = [change.obj for change in self.changes]
                self.changes.clear()
            case _:
                pass

    @property
    def came(self) -> Sequence[float]:
        """When those pods came that had no node, in seconds since 1970."""
        return [pod.came for pod in self.pods if not pod.pod.spec.node_name]

    # Pods.

    def _tell_pod(self, pod: Pod) -> None:
        known = self._current.get(pod.key)
        if known is not None and known.pod.metadata.uid != pod.metadata.uid:
            self._end_pod(pod.key)
            known = None
        has_node = bool(pod.spec.node_name)
        if known is None:
            if has_node or pod.spec.scheduler_name in self._schedulers:
                self._come(pod)
            return
        pod = _renamed(pod, known.pod.metadata.name)
        told = _undecided(pod)
        if told != known.told:
            known.told = told
            if self._begin is not None:
                self.changes.append(Change(self.since_begin(self.now), told))
        if self._begin is None:
            known.pod = pod if has_node else told
        if has_node and known.started is None:
            known.started = self.now

    def _come(self, pod: Pod) -> None:
        nth = self._names[pod.key] = self._names.get(pod.key, 0) + 1
        named = pod if nth == 1 else _renamed(pod, f"{pod.metadata.name}-again-{nth - 1}")
        has_node = bool(pod.spec.node_name)
        told = _undecided(named)
        known = _RecordedPod(named if has_node else told, self.now, told)
        if has_node:
            known.started = self.now
        self._current[pod.key] = known
        self.pods.append(known)

    def _end_pod(self, key: str, at: float | None = None) -> None:
        known = self._current.pop(key, None)
        if known is None:
            return
        known.ended = self.now if at is None else at
        if self._begin is None:
            self.pods.remove(known)

    def _take_end(self, line: lines.Step) -> None:
        """Learn from a line after the end how long pods ran."""
        match line:
            case lines.Added() | lines.Updated() | lines.Deleted() if line.kind == PODS_NAME:
                pod = PODS.decode(bytes(line.object))
                known = self._current.get(pod.key)
                if known is None or known.pod.metadata.uid != pod.metadata.uid:
                    return
                if isinstance(line, lines.Deleted) or pod.is_terminated:
                    self._end_pod(pod.key, line.t)
                elif pod.spec.node_name and known.started is None:
                    known.started = line.t
            case _:
                pass

    # Everything else.

    def _tell(self, obj: Any, *, is_gone: bool = False) -> None:
        place = type(obj), obj.metadata.key
        known = self._objects.get(place)
        if self._begin is None:
            self._objects.pop(place, None)
            if not is_gone:
                self._objects[place] = obj
        elif is_gone:
            if self._objects.pop(place, None) is not None and not pod_owners(obj):
                self.changes.append(Change(self.since_begin(self.now), obj, is_gone=True))
        elif (kept := self._without_decisions(obj, is_new=known is None)) is not None:
            self._objects[place] = kept
            self.changes.append(Change(self.since_begin(self.now), kept))

    def _without_decisions(self, obj: Any, *, is_new: bool) -> Any:
        """Return *obj* as it is without what a scheduler decided; None if it only changed that."""
        match obj:
            case PersistentVolumeClaim():
                key = obj.metadata.key
                if is_new and self._is_delayed(obj):
                    self._delayed.add(key)
                    notes = obj.metadata.annotations
                    notes = {name: notes[name] for name in notes if name != SELECTED_NODE}
                    return _replace(obj, metadata=_replace(obj.metadata, annotations=notes))
                return None if not is_new and key in self._delayed else obj
            case PersistentVolume():
                claim = obj.spec.claim_ref
                if claim is None:
                    return obj if is_new else None
                return None if f"{claim.namespace}/{claim.name}" in self._delayed else obj
            case VolumeAttachment():  # follows from where pods run
                return None if self.first else obj
            case _ if isinstance(obj, _WRITTEN_BY_SCHEDULERS):
                return obj if is_new else None
            case _:
                return obj

    def _is_delayed(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._objects.get((StorageClass, claim.storage_class))
        mode = storage_class.volume_binding_mode if storage_class is not None else ""
        return mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name


def _place(obj: Any) -> int:
    """Return when to look at *obj*: classes first, and volumes after claims."""
    order = (StorageClass, PersistentVolumeClaim, PersistentVolume)
    return order.index(type(obj)) if type(obj) in order else 0


def _renamed(pod: Pod, name: str) -> Pod:
    return _replace(pod, metadata=_replace(pod.metadata, name=name))


def _undecided(pod: Pod) -> Pod:
    """Return *pod* without a node, and without what its status says but for its claims."""
    return _replace(
        pod,
        metadata=_replace(pod.metadata, resource_version="", deletion_timestamp=None),
        spec=_replace(pod.spec, node_name=""),
        status=PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses),
    )
