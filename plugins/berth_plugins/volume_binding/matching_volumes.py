"""Choosing existing persistent volumes for claims that have none (spec §5.15, static match)."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from berth.kube.objects.selectors import EVERYTHING, Selector, compile_selector
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.scheduler.framework.assume_cache import AssumeCache
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Mask
from berth_plugins.volume_binding.label_rows import Rows
from berth_plugins.volume_binding.node_affinity import CompiledNodeAffinity, node_affinity_of

AVAILABLE: Final = "Available"

_NONE: Final = -1
_NOWHERE: Final = -2


class Candidate:
    """A persistent volume, compiled."""

    __slots__ = ("claim", "is_free", "kind", "modes", "name", "node_affinity", "size", "volume")

    def __init__(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        self.volume = volume
        self.name = volume.metadata.name
        self.size = volume.size
        """In nano bytes."""
        self.kind = _kind(volume)
        self.modes = frozenset(volume.spec.access_modes)
        self.node_affinity: CompiledNodeAffinity = node_affinity_of(volume)
        self.claim = None if reference is None else (reference.namespace, reference.name)
        """Namespace and name of the claim that has it, or for which it is reserved."""
        self.is_free = (
            reference is None
            and volume.status.phase == AVAILABLE
            and volume.metadata.deletion_timestamp is None
        )
        """Whether any claim may take it."""


def _kind(obj: PersistentVolume | PersistentVolumeClaim) -> tuple[str, str, str]:
    """Return what a claim and its volume have in common: class, mode, attributes class."""
    return obj.storage_class, obj.spec.volume_mode, obj.spec.volume_attributes_class_name


class FreeAndReserved:
    """The volumes of a lister that somebody may get, kept up to date."""

    def __init__(self, lister: Lister[PersistentVolume]) -> None:
        self._compiled: dict[str, Candidate] = {}
        self._free: dict[tuple[str, str, str], list[Candidate]] = {}
        self._reserved: dict[tuple[str, str], dict[str, Candidate]] = {}
        lister.follow(self._change)

    def free_for(self, claim: PersistentVolumeClaim) -> list[Candidate]:
        """Return, smallest first, the free volumes that are large enough, of the claim's kind."""
        candidates = self._free.get(_kind(claim), [])
        start = bisect_left(candidates, (claim.requested_size, ""), key=_order)
        return candidates[start:]

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[Candidate]:
        """Return, smallest first, the volumes that have a claim of that name."""
        meta = claim.metadata
        return sorted(self._reserved.get((meta.namespace, meta.name), {}).values(), key=_order)

    def _change(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if old is not None:
            self._remove(self._compiled.pop(old.metadata.name))
        if new is not None:
            self._add(Candidate(new))

    def _add(self, candidate: Candidate) -> None:
        self._compiled[candidate.name] = candidate
        if candidate.claim is not None:
            self._reserved.setdefault(candidate.claim, {})[candidate.name] = candidate
        elif candidate.is_free:
            insort(self._free.setdefault(candidate.kind, []), candidate, key=_order)

    def _remove(self, candidate: Candidate) -> None:
        if candidate.claim is not None:
            del self._reserved[candidate.claim][candidate.name]
            if not self._reserved[candidate.claim]:
                del self._reserved[candidate.claim]
        elif candidate.is_free:
            candidates = self._free[candidate.kind]
            del candidates[bisect_left(candidates, _order(candidate), key=_order)]
            if not candidates:
                del self._free[candidate.kind]


def _order(candidate: Candidate) -> tuple[int, str]:
    return candidate.size, candidate.name


class ClaimMatch:
    """What was found for one claim: per row the index in ``volumes`` or -1."""

    __slots__ = ("claim", "index", "volumes")

    def __init__(self, claim: PersistentVolumeClaim, rows: int) -> None:
        self.claim = claim
        self.index: Rows = np.full(rows, _NONE, np.intp)
        self.volumes: list[PersistentVolume] = []

    @property
    def found(self) -> Mask:
        """The rows for which there is a volume."""
        mask: Mask = self.index != _NONE
        return mask

    def volume(self, row: int) -> PersistentVolume | None:
        index = int(self.index[row])
        return None if index == _NONE else self.volumes[index]


class VolumeMatching:
    """Finds volumes for claims on all rows at once."""

    def __init__(
        self, lister: Lister[PersistentVolume], assumed: AssumeCache[PersistentVolume]
    ) -> None:
        """*assumed* is laid over *lister*."""
        self._assumed = assumed
        self._volumes = FreeAndReserved(lister)

    def find_matching_volumes(
        self, claims: Iterable[PersistentVolumeClaim], nodes: NodeTable, rows: Mask
    ) -> list[ClaimMatch]:
        """Find, for each of *rows*, volumes for *claims*; the smallest claim chooses first.

        A volume reserved for the claim is the answer: where it cannot be used, there is none.
        Otherwise the smallest volume that will do is taken, of equal ones the first by name. What
        one claim got is not there for the next. ``ValueError`` names a claim with a wrong selector.
        """
        choices: list[_Choice] = []
        for claim in sorted(claims, key=lambda claim: claim.requested_size):
            selector = _selector_of(claim)
            choice = _Choice(claim, nodes, rows=rows, earlier=choices)
            reserved = self._reserved_for(claim)
            if reserved is not None:
                choice.take_or_leave(reserved)
            choice.take_first(self._free_for(claim, selector))
            choices.append(choice)
        return [choice.match for choice in choices]

    def _reserved_for(self, claim: PersistentVolumeClaim) -> Candidate | None:
        """Return the volume that is the claim's, or assumed to be, if it will do."""
        assumed = self._assumed.assumed
        candidates = chain(
            (c for c in self._volumes.reserved_for(claim) if ("", c.name) not in assumed),
            map(Candidate, assumed.values()),
        )
        return next(
            (
                candidate
                for candidate in candidates
                if candidate.volume.is_bound_to(claim)
                and candidate.kind == _kind(claim)
                and candidate.size >= claim.requested_size
                and candidate.volume.metadata.deletion_timestamp is None
            ),
            None,
        )

    def _free_for(self, claim: PersistentVolumeClaim, selector: Selector) -> Iterator[Candidate]:
        assumed = self._assumed.assumed
        modes = frozenset(claim.spec.access_modes)
        for candidate in self._volumes.free_for(claim):
            if (
                modes <= candidate.modes
                and (selector.is_empty or selector.matches(candidate.volume.metadata.labels))
                and ("", candidate.name) not in assumed
            ):
                yield candidate


def _selector_of(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return compile_selector(claim.spec.selector)
    except ValueError as exc:
        key = claim.metadata.key
        raise ValueError(f"error creating internal label selector for claim: {key}: {exc}") from exc


class _Choice:
    """One claim choosing, on rows that are open until that is decided."""

    def __init__(
        self,
        claim: PersistentVolumeClaim,
        nodes: NodeTable,
        *,
        rows: Mask,
        earlier: Sequence["_Choice"],
    ) -> None:
        """*earlier* are those of the pod's other claims that went first."""
        self.match = ClaimMatch(claim, nodes.size)
        self._nodes = nodes
        self._open = rows.copy()
        self._earlier = tuple(earlier)
        self._places: dict[str, int] = {}
        """Volume name to index in ``match.volumes``."""

    def take_first(self, candidates: Iterable[Candidate]) -> None:
        """Take, on each open row, the first of *candidates* that can be used there.

        Looks at about as many at once as a volume for every row takes, and no further than needed.
        """
        batch: list[Candidate] = []
        count = 0
        for candidate in candidates:
            batch.append(candidate)
            count += len(candidate.node_affinity.rows(self._nodes))
            if count >= self._nodes.size:
                self._take(batch)
                batch, count = [], 0
                if not self._open.any():
                    return
        if batch:
            self._take(batch)

    def take_or_leave(self, candidate: Candidate) -> None:
        """Take *candidate* where it can be used, and nothing elsewhere.

        Only rows where an earlier claim has it stay open.
        """
        decided = self._open.copy()
        for choice in self._earlier:
            decided &= choice.match.index != choice.place(candidate)
        self._take([candidate])
        self._open &= ~decided

    def place(self, candidate: Candidate) -> int:
        """Return the index of the volume in ``match.volumes``; one that no row has if it is not."""
        return self._places.get(candidate.name, _NOWHERE)

    def _take(self, batch: Sequence[Candidate]) -> None:
        rows_of = [candidate.node_affinity.rows(self._nodes) for candidate in batch]
        rows = np.concatenate(rows_of)
        which = np.repeat(np.arange(len(batch)), [len(rows) for rows in rows_of])
        keep = self._open[rows]
        for choice in self._earlier:
            places = np.array([choice.place(candidate) for candidate in batch], np.intp)
            keep &= choice.match.index[rows] != places[which]
        rows, which = rows[keep], which[keep]
        first = len(self.match.volumes)
        self.match.volumes += [candidate.volume for candidate in batch]
        self._places |= {candidate.name: first + i for i, candidate in enumerate(batch)}
        # Backwards, so that what is written last, and stays, is the first of several volumes.
        self.match.index[rows[::-1]] = first + which[::-1]
        self._open[rows] = False
