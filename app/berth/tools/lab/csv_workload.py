"""Jobs of a CSV file whose columns a Lab names; they come, run for a time and end.

Decision (2026-11): rows must be in the order of time and are read anew by each run, so that what a
run keeps are the jobs that are there, however many the file has.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from berth.insight.offline.files import lines_of, opened
from berth.insight.whatif import manifests
from berth.insight.whatif.admission import Admission
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod, SchedulingGroup
from berth.kube.objects.pod_group import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from berth.tools.lab.chance import Chance
from berth.tools.lab.errors import LabError
from berth.tools.lab.manifest_workload import nodes_of
from berth.tools.lab.trace import called
from berth.tools.lab.types import CsvNodes, CsvQuantity, CsvSource
from berth.tools.lab.workload import MEASUREMENTS, WHOLE, Arrival, Change, Part, ticks

MOST_SAMPLES: Final = 10_000
"""Pods that tell what is usual, of files with more."""
MOST_TEMPLATES: Final = 4096
"""Kept to be used again."""
MOST_IN_GANG: Final = 10_000
MOST_PRIORITY: Final = 1_000_000_000
"""Of a PriorityClass that is not the system's."""

_replace = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a CSV file with a header."""

    path: Path
    line: int
    """From 1, which is the header."""
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        return self.cells[column].strip() if column else ""

    def number(self, column: str, *, empty: Decimal | None = None) -> Decimal:
        """Return a number from 0 on; LabError for anything else."""
        text = self.text(column)
        if not text and empty is not None:
            return empty
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal(-1)
        if not number.is_finite() or number < 0:
            raise self.error(column, "must be a number that is not negative")
        return number

    def whole(self, column: str, *, first: int, last: int) -> int:
        text = self.text(column)
        number = int(text) if text.removeprefix("-").isdecimal() else first - 1
        if not first <= number <= last:
            raise self.error(column, f"must be a whole number from {first} to {last}")
        return number

    def amounts(self, quantities: Mapping[str, CsvQuantity]) -> Iterator[tuple[str, str]]:
        """Yield resources with quantities, but for those of which there is nothing."""
        for name, given in quantities.items():
            number = self.number(given.column, empty=Decimal(0))
            if given.times:
                number *= self.number(given.times, empty=Decimal(0))
            if number:
                yield name, f"{number.normalize():f}{given.unit}"

    def labels(self, columns: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for name, column in columns.items():
            if value := self.text(column):
                yield name, value

    def error(self, column: str, problem: str) -> LabError:
        return LabError(
            f"{self.path}, line {self.line}: {column}: {self.text(column)!r}: {problem}"
        )

    @property
    def where(self) -> str:
        return f"{self.path}, line {self.line}"


class _Job(NamedTuple):
    """A row in which all is read."""

    name: str
    came: float
    """Seconds since the first one."""
    lifetime: float | None
    size: int
    """0: it is no gang, but one pod."""
    pod: Pod
    """Like its pods, under another name."""

    def is_there(self, at: float) -> bool:
        return self.lifetime is None or self.came + self.lifetime > at


@dataclass(frozen=True, slots=True)
class _Window:
    """Some of the rows, by number."""

    first: int
    last: int
    begin: float
    """Seconds from the first row to the first of these."""


class CsvWorkload:
    """The jobs of a CSV file."""

    is_timed = True
    resource = ""
    changes: Sequence[Change] = ()
    warnings: Sequence[str] = ()
    objects: Sequence[Any] = ()

    def __init__(self, source: CsvSource, beside: Path, part: Part = WHOLE) -> None:
        """Read the file once; LabError names the row that is wrong."""
        self._source, self._path = source, beside / source.jobs
        self._template = lru_cache(MOST_TEMPLATES)(self._new_template)
        self.nodes: Sequence[Node] = list(nodes_of(source.nodes))
        if source.node_rows is not None:
            self.nodes = [*self.nodes, *_nodes(source.node_rows, beside)]
        times, names = [], set()
        for row, job in self._jobs():
            times.append(job.came)
            if job.name in names:
                raise row.error(source.columns.name, "there is a row with this name before it")
            names.add(job.name)
        if len(times) < part.of:
            raise LabError(f"{self._path}: {len(times)} jobs: {part.of} or more are needed")
        first = len(times) * part.number // part.of
        last = len(times) * (part.number + 1) // part.of
        self._window = _Window(first, last, times[first])
        times = times[first:last]
        step = -(-len(times) // MOST_SAMPLES)
        self.pods: Sequence[Pod] = [
            job.pod
            for number, (_, job) in enumerate(self._jobs())
            if first <= number < last and not number % step
        ]
        self.length = max(ticks(times[-1] - times[0]), 1.0)
        self.interval = max(round(self.length / MEASUREMENTS), 1)

    def arrivals(self, _chance: Chance) -> Iterator[Arrival]:
        """Yield the pods; first those of jobs that came before the part, and still run then."""
        window = self._window
        for number, (_, job) in enumerate(self._jobs()):
            if number == window.last:
                return
            if number >= window.first:
                yield from _pods(job, max(job.came - window.begin, 0.0))
            elif job.is_there(window.begin):
                left = job.lifetime and ticks(job.came + job.lifetime - window.begin)
                yield from _pods(job._replace(lifetime=left), 0.0)

    def _jobs(self) -> Iterator[tuple[_Row, _Job]]:
        first: float | None = None
        came = 0.0
        columns = self._source.columns
        needed = {
            columns.arrival, columns.duration, columns.end, columns.gang_size, columns.name,
            columns.priority, *columns.labels.values(), *columns.node_labels.values(),
            *_columns(columns.requests),
        }  # fmt: skip
        for row in _rows(self._path, needed):
            at = self._moment(row, columns.arrival)
            first = at if first is None else first
            if at - first < came:
                raise row.error(columns.arrival, "is before the row above; sort the rows by it")
            came = at - first
            lifetime = None
            if row.text(columns.duration):
                lifetime = float(row.number(columns.duration)) * self._source.duration_unit.seconds
            elif row.text(columns.end):
                lifetime = self._moment(row, columns.end) - at
                if lifetime < 0:
                    raise row.error(columns.end, f"is before {columns.arrival}")
            yield row, self._job(row, ticks(came), None if lifetime is None else ticks(lifetime))

    def _job(self, row: _Row, came: float, lifetime: float | None) -> _Job:
        columns = self._source.columns
        size = 0
        if columns.gang_size:
            size = row.whole(columns.gang_size, first=1, last=MOST_IN_GANG)
        priority = None
        if row.text(columns.priority):
            priority = row.whole(columns.priority, first=-MOST_PRIORITY, last=MOST_PRIORITY)
        shape = (
            priority,
            tuple(row.amounts(columns.requests)),
            tuple(row.labels(columns.labels)),
            tuple(row.labels(columns.node_labels)),
        )
        try:
            pod = self._template(*shape)
        except manifests.QuestionError as exc:
            raise LabError(f"{row.where}: {exc}") from exc
        name = row.text(columns.name) or f"job-{row.line - 1}"
        return _Job(name, came, lifetime, size, pod)

    def _moment(self, row: _Row, column: str) -> float:
        """Return the time in a column, in seconds since any time."""
        text = row.text(column)
        try:
            seconds = float(text) * self._source.time_unit.seconds
        except ValueError:
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                raise row.error(column, "must be a number, or a date and time") from None
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        if not isfinite(seconds):
            raise row.error(column, "must be a number, or a date and time")
        return seconds

    @staticmethod
    def _new_template(
        priority: int | None,
        requests: tuple[tuple[str, str], ...],
        labels: tuple[tuple[str, str], ...],
        node_labels: tuple[tuple[str, str], ...],
    ) -> Pod:
        container = {"name": "main", "image": "job", "resources": {"requests": dict(requests)}}
        spec: dict[str, Any] = {"containers": [container]}
        if priority is not None:
            spec["priority"] = priority
        if node_labels:
            wanted = [
                {"key": key, "operator": "In", "values": values.split("|")}
                for key, values in node_labels
            ]
            term = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": term}
            spec["affinity"] = {"nodeAffinity": required}
        manifest = {"metadata": {"name": "job", "labels": dict(labels)}, "spec": spec}
        return manifests.pod(manifest, at="pod", admission=Admission()).pods[0]


def _pods(job: _Job, at: float) -> Iterator[Arrival]:
    one = Arrival(called(job.pod, job.name), at, job.lifetime, comes_again=True)
    if not job.size:
        yield one
        return
    policy = PodGroupSchedulingPolicy(GangSchedulingPolicy(job.size))
    meta = ObjectMeta(name=job.name, namespace=job.pod.metadata.namespace, uid=f"gang:{job.name}")
    group = PodGroup(meta, PodGroupSpec(policy, priority=job.pod.spec.priority))
    spec = _replace(job.pod.spec, scheduling_group=SchedulingGroup(job.name))
    for number in range(job.size):
        pod = _replace(called(job.pod, f"{job.name}-{number}"), spec=spec)
        yield replace(one, pod=pod, group=group, size=job.size)


def _nodes(source: CsvNodes, beside: Path) -> Iterator[Node]:
    needed = {source.name, *source.labels.values(), *_columns(source.allocatable)}
    names = set()
    for row in _rows(beside / source.file, needed):
        name = row.text(source.name)
        if not name or name in names:
            raise row.error(source.name, "must be a name that no row before it has")
        names.add(name)
        amounts = {**dict(row.amounts(source.allocatable)), "pods": str(source.max_pods)}
        labels = {manifests.HOSTNAME: name, **dict(row.labels(source.labels))}
        manifest = {
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": amounts},
        }
        yield manifests.node(manifest, at=row.where)


def _columns(quantities: Mapping[str, CsvQuantity]) -> Iterator[str]:
    for given in quantities.values():
        yield from (given.column, given.times)


def _rows(path: Path, needed: set[str]) -> Iterator[_Row]:
    """Yield the rows of a file that has these columns; LabError if it does not."""
    with opened(path, "rt") as file:
        reader = csv.DictReader(lines_of(path, file), restval="")
        names = list(reader.fieldnames or ())
        for column in sorted(needed - {""}):
            if column not in names:
                raise LabError(
                    f"{path}, line 1: {column}: there is no such column: {', '.join(names)}"
                )
        try:
            for cells in reader:
                yield _Row(path, reader.line_num, cells)
        except csv.Error as exc:
            raise LabError(f"{path}, line {reader.line_num}: {exc}") from exc
