"""ResourceSlices with the taints of DeviceTaintRules (spec G15.1; ``resourceslice/tracker``)."""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from berth.kube.objects.devices import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice
from berth.kube.objects.node import Taint
from berth.scheduler.framework.listers import Change, Followers, Listers

K = TypeVar("K")
V = TypeVar("V")

_Place = tuple[str | None, str | None]
"""Driver and pool; None in a rule is every one."""

_Taints = dict[str, Taint]
"""By name of the rule."""


class ResourceSliceTracker:
    """All ResourceSlices, those with devices that rules taint as patched copies.

    The slices themselves are not changed. Whoever follows is told of every change of a slice, and
    of a rule only where it changes the taints of a slice.
    """

    def __init__(self, listers: Listers) -> None:
        self._rules: dict[_Place, dict[str | None, _Taints]] = {}
        """By driver and pool, then by device."""
        self._published: dict[_Place, dict[str, ResourceSlice]] = {}
        """By driver and pool, then by name."""
        self._patched: dict[str, ResourceSlice] = {}
        """By name."""
        self._followers: Followers[ResourceSlice] = Followers()
        listers.device_taint_rules.follow(self._on_rule_change)
        listers.resource_slices.follow(self._on_slice_change)

    def __iter__(self) -> Iterator[ResourceSlice]:
        return iter(self._patched.values())

    def follow(self, change: Change[ResourceSlice]) -> None:
        """Do as :meth:`Lister.follow`, with patched slices."""
        self._followers.add(change)
        for published in self:
            change(None, published)

    def _on_slice_change(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        before = after = None
        if old is not None:
            before = self._patched.pop(old.metadata.name)
            _remove(self._published, _place_of(old), old.metadata.name)
        if new is not None:
            self._published.setdefault(_place_of(new), {})[new.metadata.name] = new
            after = self._patched[new.metadata.name] = self._patch(new)
        self._followers.notify(before, after)

    def _on_rule_change(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        selectors = []
        if old is not None:
            selectors.append(selector := _selector_of(old))
            place = (selector.driver, selector.pool)
            _remove(self._rules[place], selector.device, old.metadata.name)
            if not self._rules[place]:
                del self._rules[place]
        if new is not None:
            selectors.append(selector := _selector_of(new))
            rules = self._rules.setdefault((selector.driver, selector.pool), {})
            rules.setdefault(selector.device, {})[new.metadata.name] = new.spec.taint
        for (driver, pool), slices in list(self._published.items()):
            if any(one.driver in (driver, None) and one.pool in (pool, None) for one in selectors):
                for published in list(slices.values()):
                    self._patch_again(published)

    def _patch_again(self, published: ResourceSlice) -> None:
        before, after = self._patched[published.metadata.name], self._patch(published)
        if _taints_of(before) != _taints_of(after):
            self._patched[published.metadata.name] = after
            self._followers.notify(before, after)

    def _patch(self, published: ResourceSlice) -> ResourceSlice:
        """Return the slice with the taints of all rules, itself if there are none for it."""
        driver, pool = _place_of(published)
        places = [(driver, pool), (driver, None), (None, pool), (None, None)]
        matching = [rules for place in places if (rules := self._rules.get(place)) is not None]
        if not matching:
            return published
        devices = tuple(_tainted(device, matching) for device in published.spec.devices)
        spec = msgspec.structs.replace(published.spec, devices=devices)
        return msgspec.structs.replace(published, spec=spec)


def resource_slice_tracker(listers: Listers) -> ResourceSliceTracker:
    """Return the one tracker, which all profiles and the queue share."""
    return listers.shared(ResourceSliceTracker)


def _remove(of: dict[K, dict[str, V]], key: K, name: str) -> None:
    del of[key][name]
    if not of[key]:
        del of[key]


def _place_of(published: ResourceSlice) -> tuple[str, str]:
    return published.spec.driver, published.spec.pool.name


def _selector_of(rule: DeviceTaintRule) -> DeviceTaintSelector:
    """Return what *rule* selects: as in 1.36, without a selector it is every device."""
    return rule.spec.device_selector or DeviceTaintSelector()


def _tainted(device: Device, matching: list[dict[str | None, _Taints]]) -> Device:
    """Append the taints of the rules for *device*, by name of the rule."""
    added: _Taints = {}
    for rules in matching:
        added |= rules.get(device.name, {})
        added |= rules.get(None, {})
    if not added:
        return device
    taints = (*device.taints, *(added[name] for name in sorted(added)))
    return msgspec.structs.replace(device, taints=taints)


def _taints_of(published: ResourceSlice) -> list[tuple[Taint, ...]]:
    return [device.taints for device in published.spec.devices]
