"""Resource pools: what drivers publish in ResourceSlices, as one node sees it (spec §5.17)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from berth.kube.cel.selector_error import SelectorError
from berth.kube.objects.devices import (
    Device,
    DeviceAttribute,
    DeviceId,
    ResourceSlice,
    ResourceSliceSpec,
)
from berth.kube.objects.node import Node
from berth.kube.objects.pod import NodeSelector
from berth.kube.objects.selectors import NodeSelectorMatcher, compile_node_selector
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.resource_slice_tracker import (
    ResourceSliceTracker,
    resource_slice_tracker,
)
from berth_plugins.dynamic_resources.changes import Changes
from berth_plugins.dynamic_resources.counters import (
    Counters,
    counters_in,
    counters_of,
    groups_of,
)
from berth_plugins.dynamic_resources.features import Features

if TYPE_CHECKING:
    from berth.kube.cel.selectors import DeviceView, Expression


class PoolId(NamedTuple):
    driver: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


ANSWERS_KEPT: Final = 64
"""To so many expressions a device remembers what they said of it; the oldest is forgotten."""


class PoolDevice:
    """A device as published; remembers what selectors said of it."""

    __slots__ = ("_answers", "_view", "consumes", "device", "groups", "id", "slice")

    def __init__(self, slice_: ResourceSlice, device: Device) -> None:
        spec = slice_.spec
        self.id = DeviceId(spec.driver, spec.pool.name, device.name)
        self.device = device
        self.slice = slice_
        self.consumes = counters_of(device)
        """What it takes from its pool's counters while it is allocated, in nano units."""
        self.groups = groups_of(device)
        """With whom it may take from counters: names by counter set."""
        self._view: DeviceView | None = None
        self._answers: dict[str, bool | SelectorError] = {}

    def matches(self, expression: "Expression") -> bool:
        """Raises SelectorError when *expression* fails on this device.

        All expressions of one scheduler have the same features.
        """
        answer = self._answers.get(expression.source)
        if answer is None:
            if len(self._answers) >= ANSWERS_KEPT:
                del self._answers[next(iter(self._answers))]
            answer = self._answers[expression.source] = self._ask(expression)
        if isinstance(answer, SelectorError):
            raise answer
        return answer

    def _ask(self, expression: "Expression") -> bool | SelectorError:
        try:
            return expression.matches(self._view_for(expression))
        except SelectorError as exc:
            return exc

    def _view_for(self, expression: "Expression") -> "DeviceView":
        from berth.kube.cel.selectors import DeviceView  # takes long to load

        if self._view is None:
            self._view = DeviceView.of(self.id.driver, self.device, expression.features)
        return self._view

    def derive(self, expression: "Expression") -> DeviceAttribute:
        """Return what *expression* says of the device; raises SelectorError."""
        return expression.attribute(self._view_for(expression))

    def is_for(self, node: Node) -> bool:
        """Whether *node* may use the device, if its slice leaves that to each device."""
        if not self.slice.spec.per_device_node_selection:
            return True
        return is_node_chosen(node, self.device)

    def __repr__(self) -> str:
        return f"PoolDevice({self.id})"


class Pool(msgspec.Struct, frozen=True, eq=False):
    """A pool's newest generation as a node sees it. Broken ones have no devices to give."""

    id: PoolId
    is_incomplete: bool = False
    """Not all of its slices are there yet."""
    is_invalid: bool = False
    """Its slices contradict each other."""
    devices: tuple[PoolDevice, ...] = ()
    """Those of the slices that reach the node, in the order in which they are tried."""
    counters: Counters = msgspec.field(default_factory=dict)
    """What its devices share when none is allocated."""
    consumers: tuple[PoolDevice, ...] = ()
    """All devices of the pool, for this node or not, that take from the counters."""
    differs_by_node: bool = False
    """Whether nodes that see the same slices may not use the same devices."""

    waits: bool = False
    """Whether some devices have to be waited for."""

    @property
    def is_broken(self) -> bool:
        return self.is_incomplete or self.is_invalid

    @property
    def order(self) -> tuple[bool, PoolId]:
        """Pools are tried by driver and name, those that have to be waited for at the end."""
        return self.waits, self.id


class _Slice(NamedTuple):
    """A slice with its devices."""

    slice: ResourceSlice
    devices: tuple[PoolDevice, ...]
    matters_everywhere: bool = False
    """Whether it matters for nodes that it is not for, too."""

    @property
    def generation(self) -> int:
        return self.slice.spec.pool.generation

    @property
    def has_counters(self) -> bool:
        return bool(self.slice.spec.shared_counters)

    def reaches(self, node: Node) -> bool:
        """Whether the slice matters for *node*."""
        spec = self.slice.spec
        if self.matters_everywhere:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return is_node_chosen(node, spec)
        if spec.per_device_node_selection:
            return any(is_node_chosen(node, device.device) for device in self.devices)
        return False  # a way of choosing nodes that we do not know


class View(NamedTuple):
    """What a node sees."""

    pools: tuple[Pool, ...]
    """In the order in which they are tried."""
    key: str
    """The same for nodes for which a search finds the same."""
    shared: "View | None" = None
    """Without the pools that have slices for the node alone, if there are others."""


class _Seen(NamedTuple):
    """What a node saw, and what else that depends on."""

    node: Node
    shared_version: int
    elsewhere: tuple[Pool, ...]
    view: View


class ResourcePools:
    """All ResourceSlices, by pool and by node. All profiles share them, in ``Listers.shared``."""

    def __init__(
        self,
        listers: Listers,
        tracker: ResourceSliceTracker | None = None,
        *,
        counters_by_node: bool = True,
    ) -> None:
        """With a *tracker* the slices are as it says, with the taints of DeviceTaintRules.

        *counters_by_node*: slices with counters matter where others do, else everywhere.
        """
        self._counters_by_node = counters_by_node
        self.changes: Changes[frozenset[str] | None] = Changes()
        """The names of the nodes that see another pool than before; None: maybe all."""
        self._pools: dict[PoolId, dict[str, _Slice]] = {}
        self._local: dict[str, dict[PoolId, int]] = {}
        """Node name to the pools with slices for that node alone, and how many slices."""
        self._shared: dict[PoolId, int] = {}
        """Pools with slices for more than one node, and how many slices."""
        self._everywhere: dict[PoolId, int] = {}
        """Pools with slices that matter everywhere, and how many."""
        self._shared_version = 0
        self._elsewhere: tuple[Pool, ...] | None = ()
        self._seen: dict[str, _Seen] = {}
        self._shared_pools: dict[PoolId, dict[tuple[str, ...], Pool | None]] = {}
        """What is made of slices that are not for one node, by the names of those that reach it."""
        self._selectors: dict[NodeSelector, int] = {}
        """Those of slices for more than one node, and of how many slices."""
        self._differing = 0
        """How many slices do not say all about which nodes may use their devices."""
        self._beside: dict[tuple[tuple[bool, ...], frozenset[PoolId]], tuple[Pool, ...]] = {}
        """What nodes see beside their own pools, by what it follows from."""
        self._shared_views: dict[tuple[int, ...], View] = {}
        """What nodes see that have no slices of their own, by the addresses of its pools."""
        (tracker or listers.resource_slices).follow(self._on_change)

    # Changes.

    def _on_change(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None and (new is None or _pool_id(old) != _pool_id(new)):
            self._remove(old)
        if new is not None:
            self._add(new)

    def _add(self, slice_: ResourceSlice) -> None:
        id_ = _pool_id(slice_)
        slices = self._pools.setdefault(id_, {})
        before = slices.get(slice_.metadata.name)
        if before is not None:
            self._forget(id_, before)
        devices = tuple(PoolDevice(slice_, device) for device in slice_.spec.devices)
        everywhere = bool(slice_.spec.shared_counters) and not self._counters_by_node
        added = slices[slice_.metadata.name] = _Slice(slice_, devices, everywhere)
        self._count(id_, added, 1)
        self._touch(id_, added)

    def _remove(self, slice_: ResourceSlice) -> None:
        id_ = _pool_id(slice_)
        removed = self._pools.get(id_, {}).pop(slice_.metadata.name, None)
        if removed is None:
            return
        self._forget(id_, removed)
        if not self._pools[id_]:
            del self._pools[id_]

    def _forget(self, id_: PoolId, slice_: _Slice) -> None:
        self._touch(id_, slice_)
        self._count(id_, slice_, -1)

    def _count(self, id_: PoolId, slice_: _Slice, sign: int) -> None:
        spec = slice_.slice.spec
        node_name = spec.node_name
        if not node_name:
            self._count_ways(spec, sign)
        counts = [self._local.setdefault(node_name, {}) if node_name else self._shared]
        if slice_.matters_everywhere:
            counts.append(self._everywhere)
        for count in counts:
            count[id_] = count.get(id_, 0) + sign
            if not count[id_]:
                del count[id_]
        if node_name and not self._local[node_name]:
            del self._local[node_name]

    def _count_ways(self, spec: ResourceSliceSpec, sign: int) -> None:
        """Count how a slice for more than one node chooses them."""
        self._differing += sign * _differs_by_node(spec)
        selector = spec.node_selector
        if selector is not None:
            self._selectors[selector] = self._selectors.get(selector, 0) + sign
            if not self._selectors[selector]:
                del self._selectors[selector]

    def _touch(self, id_: PoolId, changed: _Slice) -> None:
        """Forget what those saw who saw the pool."""
        if id_ in self._shared:
            self._shared_version += 1
            self._shared_pools.pop(id_, None)
            self._forget_shared_views()
        if id_ in self._everywhere:
            self._elsewhere = None
            self._forget_shared_views()
        names = _node_names((changed, *self._pools[id_].values()))
        for name in names:
            self._seen.pop(name, None)
        matters_everywhere = id_ in self._shared or id_ in self._everywhere
        self.changes.add(None if matters_everywhere else names)

    def _forget_shared_views(self) -> None:
        self._shared_views.clear()
        self._beside.clear()

    # Views.

    def nodes_of(self, id_: PoolId) -> frozenset[str] | None:
        """Return the names of the nodes that see devices of a pool; None: maybe all."""
        return None if id_ in self._shared else _node_names(self._pools.get(id_, {}).values())

    def pools_of(self, node: Node) -> tuple[Pool, ...]:
        """Return the pools that *node* sees, in the order in which they are tried.

        The same tuple as long as neither the node nor what it sees changes.
        """
        return self.view_of(node).pools

    def view_of(self, node: Node) -> View:
        """Return what *node* sees; the same for nodes that share all that they see."""
        name = node.metadata.name
        elsewhere = self._broken_pools_elsewhere()
        seen = self._seen.get(name)
        if (
            seen is not None
            and seen.node is node
            and seen.shared_version == self._shared_version
            and seen.elsewhere is elsewhere
        ):
            return seen.view
        local = self._local.get(name, {})
        shared = pools = self._pools_beside(node, local)
        if local:
            own = (self._pool_of(id_, node) for id_ in local)
            more = (*shared, *(pool for pool in own if pool is not None))
            pools = tuple(sorted(more, key=lambda pool: pool.order))
        view = View(pools, name)
        if shared and not any(pool.differs_by_node for pool in shared):
            of_others = View(shared, f"{_SHARED}{name}")
            of_others = self._shared_views.setdefault(tuple(map(id, shared)), of_others)
            view = view._replace(shared=of_others) if local else of_others
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        self._seen[name] = _Seen(node, self._shared_version, elsewhere, view)
        return view

    def _pools_beside(self, node: Node, local: Mapping[PoolId, int]) -> tuple[Pool, ...]:
        """Return the pools that *node* sees beside the *local* ones, in their order.

        They are the same for nodes that the same selectors of slices match, unless devices select
        nodes themselves.
        """
        labels, name = node.metadata.labels, node.metadata.name
        elsewhere = {pool.id: pool for pool in self._broken_pools_elsewhere()}
        key = (
            tuple(_matcher(selector).matches(labels, name) for selector in self._selectors),
            frozenset(id_ for id_ in local if id_ in self._shared or id_ in elsewhere),
        )
        known = None if self._differing else self._beside.get(key)
        if known is None:
            shared = (self._pool_of(id_, node) for id_ in self._shared.keys() - local.keys())
            pools = [pool for pool in shared if pool is not None]
            pools += [
                pool
                for id_, pool in elsewhere.items()
                if id_ not in local and id_ not in self._shared
            ]
            known = self._beside[key] = tuple(sorted(pools, key=lambda pool: pool.order))
        return known

    def published_for(self, node: Node) -> Iterator[PoolDevice]:
        """Yield the devices of all slices that reach *node*, whatever state their pools are in."""
        for id_ in sorted(self._local.get(node.metadata.name, {}).keys() | self._shared.keys()):
            for _, slice_ in sorted(self._pools[id_].items()):
                if slice_.reaches(node):
                    yield from (device for device in slice_.devices if device.is_for(node))

    def _broken_pools_elsewhere(self) -> tuple[Pool, ...]:
        """Return the broken pools that even nodes without devices in them see.

        In 1.36 slices with counters matter everywhere, so that a request for all devices finds its
        answer put off while such a pool is being updated, wherever it is.
        """
        if self._elsewhere is None:
            nowhere = Node()
            views = (self._pool_of(id_, nowhere) for id_ in self._everywhere)
            self._elsewhere = tuple(pool for pool in views if pool is not None and pool.is_broken)
        return self._elsewhere

    def _pool_of(self, id_: PoolId, node: Node) -> Pool | None:
        """Return the pool as *node* sees it, None if nothing of it, or nothing new, reaches it."""
        slices = [slice_ for _, slice_ in sorted(self._pools[id_].items())]
        reaching = [slice_ for slice_ in slices if slice_.reaches(node)]
        if not reaching:
            return None
        if id_ not in self._shared:
            return self._pool_from(id_, slices, reaching)
        known = self._shared_pools.setdefault(id_, {})
        names = tuple(slice_.slice.metadata.name for slice_ in reaching)
        if names not in known:
            known[names] = self._pool_from(id_, slices, reaching)
        return known[names]

    def _pool_from(self, id_: PoolId, slices: list[_Slice], reaching: list[_Slice]) -> Pool | None:
        """Make the pool of which *reaching* are seen of all *slices*."""
        generation = max(slice_.generation for slice_ in reaching)
        reaching = [slice_ for slice_ in reaching if slice_.generation == generation]
        wanted = reaching[0].slice.spec.pool.resource_slice_count
        everywhere = reaching
        if len(reaching) != wanted:
            if any(slice_.generation > generation for slice_ in slices):
                return None  # the driver is replacing what this node sees
            everywhere = [slice_ for slice_ in slices if slice_.generation == generation]
            if len(everywhere) != wanted:
                return Pool(id_, is_incomplete=True)
        return _complete(id_, reaching, everywhere)


def shared_pools(listers: Listers, features: Features) -> ResourcePools:
    """Return the pools of all profiles, as *features* say."""
    return listers.shared(_pools(features.device_taint_rules, features.counters_by_node))


@cache
def _pools(has_rules: bool, counters_by_node: bool) -> Callable[[Listers], ResourcePools]:
    def make(listers: Listers) -> ResourcePools:
        tracker = resource_slice_tracker(listers) if has_rules else None
        return ResourcePools(listers, tracker, counters_by_node=counters_by_node)

    return make


_SHARED: Final = "shared/"
"""Stands before the name of the first node that has a view, which no node name has in it."""

_MOST_SEEN: Final = 100_000
"""So many nodes are remembered; names of deleted ones must not pile up for ever."""


def _node_names(slices: Iterable[_Slice]) -> frozenset[str]:
    return frozenset(slice_.slice.spec.node_name or "" for slice_ in slices)


def _pool_id(slice_: ResourceSlice) -> PoolId:
    return PoolId(slice_.spec.driver, slice_.spec.pool.name)


def _complete(id_: PoolId, reaching: Sequence[_Slice], everywhere: Sequence[_Slice]) -> Pool:
    """Return a pool of which all slices are there; contradictions make it invalid."""
    devices = tuple(_devices(reaching))
    counters = counters_in(
        counter_set for slice_ in everywhere for counter_set in slice_.slice.spec.shared_counters
    )
    consumers = tuple(device for device in _devices(everywhere) if device.consumes)
    if (
        len({device.id for device in devices}) < len(devices)
        or counters is None
        or any(device.consumes.keys() - counters.keys() for device in consumers)
    ):
        return Pool(id_, is_invalid=True)
    return Pool(
        id_,
        devices=devices,
        counters=counters,
        consumers=consumers,
        waits=any(device.device.binding_conditions for device in devices),
        differs_by_node=any(_differs_by_node(slice_.slice.spec) for slice_ in reaching),
    )


def _differs_by_node(spec: ResourceSliceSpec) -> bool:
    """Whether nodes are chosen by device, or must declare what kubelets need for the devices."""
    return spec.per_device_node_selection or bool(spec.skip_node_operations)


def _devices(slices: Iterable[_Slice]) -> Iterator[PoolDevice]:
    """Yield devices; slices with counters have none to allocate."""
    for slice_ in slices:
        if not slice_.has_counters:
            yield from slice_.devices


def is_node_chosen(node: Node, by: Device | ResourceSliceSpec) -> bool:
    """Whether a device or slice is for *node*, by name, as all are, or by a selector."""
    if by.node_name:
        return by.node_name == node.metadata.name
    if by.all_nodes:
        return True
    if by.node_selector is None:
        return False
    return _matcher(by.node_selector).matches(node.metadata.labels, node.metadata.name)


@lru_cache(maxsize=4096)
def _matcher(selector: NodeSelector) -> NodeSelectorMatcher:
    return compile_node_selector(selector)
