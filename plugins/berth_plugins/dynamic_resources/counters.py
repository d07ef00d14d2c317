"""Counters that the devices of a pool share: partitions of one piece of hardware (spec §5.17)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from berth.kube.objects.devices import CounterSet, Device
from berth.kube.objects.quantity import parse


class CounterName(NamedTuple):
    counter_set: str
    counter: str


Counters = Mapping[CounterName, int]
"""Amounts in nano units."""


def counters_of(device: Device) -> Counters:
    """Return what *device* takes while it is allocated."""
    taken: dict[CounterName, int] = {}
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            key = CounterName(consumption.counter_set, name)
            taken[key] = taken.get(key, 0) + parse(counter.value)
    return taken


def groups_of(device: Device) -> Mapping[str, tuple[str, ...]]:
    """Return the compatibility groups that *device* declares, by counter set; sets without none."""
    return {
        consumption.counter_set: consumption.compatibility_groups
        for consumption in device.consumes_counters
        if consumption.compatibility_groups
    }


def counters_in(sets: Iterable[CounterSet]) -> Counters | None:
    """Return what all *sets* offer; None if a set is there twice."""
    offered: dict[CounterName, int] = {}
    names: set[str] = set()
    for counter_set in sets:
        if counter_set.name in names:
            return None
        names.add(counter_set.name)
        for name, counter in counter_set.counters.items():
            offered[CounterName(counter_set.name, name)] = parse(counter.value)
    return offered
