"""Eviction thresholds: read as a kubelet reads them, and in force on a node's file systems.

Source: ``ParseThresholdConfig`` and ``UpdateContainerFsThresholds``.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from berth.cluster.kubelet.eviction.signals import Signal
from berth.kube.objects.amounts import Amount, amount
from berth.kube.objects.quantity import NANO, value
from berth.runtime.duration import Duration

Statements = Mapping[str, str]
"""By signal: a quantity, a percentage, or a duration."""

DEFAULT_HARD: Final[Statements] = {
    Signal.MEMORY_AVAILABLE: "100Mi",
    Signal.NODEFS_AVAILABLE: "10%",
    Signal.NODEFS_INODES_FREE: "5%",
    Signal.IMAGEFS_AVAILABLE: "15%",
    Signal.IMAGEFS_INODES_FREE: "5%",
}
"""Where ``evictionHard`` is not set; who sets it gets no other than those set."""

_IGNORED: Final = ("0%", "100%")


@dataclass(frozen=True, slots=True)
class ThresholdValue:
    """An amount, or a share of the capacity."""

    quantity: Amount | None = None
    percentage: float = 0.0
    """Of 1, with the precision of a float32."""

    def of(self, capacity: int) -> Amount:
        """Return the amount where there is *capacity* in all."""
        if self.quantity is not None:
            return self.quantity
        return Amount(int(capacity * self.percentage) * NANO, binary=True)


@dataclass(frozen=True, slots=True)
class Threshold:
    """How low a signal may be."""

    signal: Signal
    value: ThresholdValue
    grace_seconds: float = 0.0
    """How long it may be lower before pods are evicted."""
    min_reclaim: ThresholdValue | None = None
    """How much more is to be freed once it was."""

    @property
    def is_hard(self) -> bool:
        return self.grace_seconds == 0.0


class Filesystems(Enum):
    """Where a node has images and the writable layers of containers."""

    SHARED = auto()
    """All in one file system: nodefs."""
    IMAGEFS = auto()
    """Both in one of their own: imagefs."""
    SPLIT = auto()
    """Images in one of their own; writable layers in nodefs."""


def parse_thresholds(
    *,
    hard: Statements,
    soft: Statements,
    soft_grace_periods: Statements,
    minimum_reclaim: Statements,
    enforces_allocatable: bool = True,
) -> tuple[Threshold, ...]:
    """Return the thresholds of a configuration; ValueError in the words of a kubelet."""
    periods = {_signal(name): _grace_period(text) for name, text in soft_grace_periods.items()}
    reclaims = {_signal(name): _reclaim(name, text) for name, text in minimum_reclaim.items()}
    found = _statements(hard)
    for statement in _statements(soft):
        if statement.signal not in periods:
            raise ValueError(
                f"grace period must be specified for the soft eviction threshold {statement.signal}"
            )
        found.append(replace(statement, grace_seconds=periods[statement.signal]))
    found = [replace(each, min_reclaim=reclaims.get(each.signal)) for each in found]
    if enforces_allocatable:
        found += [
            replace(each, signal=Signal.ALLOCATABLE_MEMORY_AVAILABLE)
            for each in found
            if each.signal is Signal.MEMORY_AVAILABLE and each.is_hard
        ]
    return tuple(found)


def in_force(
    thresholds: Iterable[Threshold], filesystems: Filesystems
) -> tuple[Sequence[Threshold], Sequence[Signal]]:
    """Return the thresholds on a node with these file systems, and the signals that are ignored.

    Those of containerfs follow those of the file system that has the writable layers.
    """
    given = list(thresholds)
    containerfs = {Signal.CONTAINERFS_AVAILABLE, Signal.CONTAINERFS_INODES_FREE}
    on_imagefs = filesystems is Filesystems.IMAGEFS
    followed = {
        Signal.IMAGEFS_AVAILABLE if on_imagefs else Signal.NODEFS_AVAILABLE: (
            Signal.CONTAINERFS_AVAILABLE
        ),
        Signal.IMAGEFS_INODES_FREE if on_imagefs else Signal.NODEFS_INODES_FREE: (
            Signal.CONTAINERFS_INODES_FREE
        ),
    }
    kept = [each for each in given if each.signal not in containerfs]
    kept += [
        replace(each, signal=followed[each.signal]) for each in kept if each.signal in followed
    ]
    return kept, [each.signal for each in given if each.signal in containerfs]


def _statements(statements: Statements) -> list[Threshold]:
    found = []
    for name, text in statements.items():
        signal = _signal(name)
        if text in _IGNORED:
            continue
        found.append(Threshold(signal, _value(signal, text)))
    return found


def _signal(name: str) -> Signal:
    try:
        return Signal(name)
    except ValueError:
        raise ValueError(f"unsupported eviction signal {name}") from None


def _value(signal: Signal, text: str) -> ThresholdValue:
    if text.endswith("%"):
        percentage = _percentage(text)
        if percentage < 0:
            raise ValueError(f"eviction percentage threshold {signal} must be >= 0%: {text}")
        if percentage > 1:
            raise ValueError(f"eviction percentage threshold {signal} must be <= 100%: {text}")
        return ThresholdValue(percentage=percentage)
    quantity = _quantity(signal, text)
    if quantity.nanos <= 0:
        raise ValueError(f"eviction threshold {signal} must be positive: {text}")
    return ThresholdValue(quantity)


def _reclaim(signal: str, text: str) -> ThresholdValue:
    if text.endswith("%"):
        percentage = _percentage(text)
        if percentage <= 0:
            raise ValueError(
                f"eviction percentage minimum reclaim {signal} must be positive: {text}"
            )
        return ThresholdValue(percentage=percentage)
    quantity = _quantity(signal, text)
    if quantity.nanos < 0:
        raise ValueError(f"negative eviction minimum reclaim specified for {signal}")
    return ThresholdValue(quantity)


def _quantity(signal: str, text: str) -> Amount:
    try:
        found = amount(text)
    except ValueError as exc:
        raise ValueError(f"{signal}: {exc}") from None
    return Amount(value(found.nanos) * NANO, found.binary) if found.nanos >= NANO else found


def _grace_period(text: str) -> float:
    period = Duration.parse(text).seconds
    if period < 0:
        raise ValueError(
            f"invalid eviction grace period specified: {text}, must be a positive value"
        )
    return period


def _percentage(text: str) -> float:
    try:
        number = float(text.rstrip("%")) if text[0] not in " +_" else None
    except ValueError:
        number = None
    if number is None or "_" in text or number != number:  # NaN
        raise ValueError(f'strconv.ParseFloat: parsing "{text.rstrip("%")}": invalid syntax')
    return _float32(_float32(number) / 100)


def _float32(number: float) -> float:
    try:
        found: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return found
