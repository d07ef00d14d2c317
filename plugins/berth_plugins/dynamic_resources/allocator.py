"""The search for devices: depth first, the first solution wins (spec §5.17)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import Enum
from functools import partial

from berth.kube.objects.devices import Device, DeviceAttribute, DeviceId
from berth.kube.objects.node import Node
from berth.kube.objects.quantity import Quantities, parse
from berth.kube.objects.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.candidates import Candidate, Position, Wanted
from berth_plugins.dynamic_resources.capacity import Consumed, share_of
from berth_plugins.dynamic_resources.compatibility_groups import CompatibilityGroups
from berth_plugins.dynamic_resources.constraints import (
    Constraint,
    Typed,
    attribute_of,
    constraint_of,
    must_differ,
    needed_value,
)
from berth_plugins.dynamic_resources.features import (
    DEFAULT,
    OPTIONAL_NODE_OPERATIONS,
    Features,
)
from berth_plugins.dynamic_resources.matching import Demand, are_enough
from berth_plugins.dynamic_resources.pools import Pool, PoolDevice
from berth_plugins.dynamic_resources.requests import (
    MAX_DEVICES,
    AllocationError,
    ClaimRequests,
    Request,
)
from berth_plugins.dynamic_resources.search_result import (
    ClaimPicks,
    InvalidPoolsError,
    Pick,
    SearchTimeoutError,
)
from berth_plugins.dynamic_resources.set_aside import SetAside
from berth_plugins.dynamic_resources.usable_devices import KnownDevices, UsableDevices


class _NotEnoughError(Exception):
    """There are not devices enough, however they are given out."""


class _Outcome(Enum):
    FOUND = "found"
    NOT_FOUND = "not found"
    TOO_MANY = "too many devices"


def allocate(
    claims: Sequence[ClaimRequests],
    node: Node,
    pools: Sequence[Pool],
    in_use: AllocatedDevices,
    *,
    is_late: Callable[[], bool],
    features: Features = DEFAULT,
    known: KnownDevices | None = None,
) -> tuple[ClaimPicks, ...] | None:
    """Find devices on *node*, which sees *pools*, for all *claims*; None if there are none.

    *known* is what other searches with the same *in_use* and *features* have found out.

    Raises AllocationError when nobody could search, SearchTimeoutError once *is_late*,
    InvalidPoolsError when there are none among the pools that are in order.
    """
    if known is None:
        known = KnownDevices(in_use)
    search = _Search(claims, node, pools, in_use, is_late, features, known)
    if search.run():
        return tuple(search.found())
    if any(pool.is_invalid for pool in pools):
        raise InvalidPoolsError
    return None


class _Search:
    """One search. Every step knows its undo; what is found stands in ``_picks``."""

    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        node: Node,
        pools: Sequence[Pool],
        in_use: AllocatedDevices,
        is_late: Callable[[], bool],
        features: Features,
        known: KnownDevices,
    ) -> None:
        self._known = known
        self._features = features
        self._claims = claims
        self._node = node
        self._pools = pools
        self._in_use = in_use
        self._is_late = is_late
        self._working_pools = [pool for pool in pools if not pool.is_broken]
        self._selected: dict[tuple[int, DeviceId], bool] = {}
        self._holders: defaultdict[DeviceId, set[int]] = defaultdict(set)
        """For each device picked, which claims have it alone."""
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._num_shares: Counter[DeviceId] = Counter()
        """How many shares of each device are picked."""
        groups = CompatibilityGroups(in_use) if features.compatibility_groups else None
        self._counters = SetAside(in_use, groups)
        self._derived: dict[tuple[int, DeviceId, str], DeviceAttribute] = {}
        """By address of the request, device and name."""
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._chosen: list[list[int]] = [[0] * len(claim.requests) for claim in claims]
        self._wanted: list[list[list[Wanted]]] = []
        self._constraints: list[list[Constraint]] = []
        self._has_counted = False

    def run(self) -> bool:
        try:
            return self._run()
        except _NotEnoughError:
            return False

    def _run(self) -> bool:
        for claim in self._claims:
            wanted = [[self._want(claim, one) for one in choice] for choice in claim.requests]
            least = sum(min(one.count for one in choice) for choice in wanted)
            if least > MAX_DEVICES:
                raise AllocationError(
                    f"claim {claim.key}: number of requested devices {least} exceeds the claim"
                    f" limit of {MAX_DEVICES}"
                )
            self._wanted.append(wanted)
            self._constraints.append(list(_constraints_of(claim, self._features)))
        return self._claim(0) is _Outcome.FOUND

    def found(self) -> Iterator[ClaimPicks]:
        for picks, chosen in zip(self._picks, self._chosen, strict=True):
            yield ClaimPicks(tuple(picks), tuple(chosen))

    # Before the search: how much is wanted.

    def _want(self, claim: ClaimRequests, request: Request) -> Wanted:
        asked = request.asked
        if not request.takes_all:
            return Wanted(request, request.written.count, asked)
        wanted = Wanted(request, 0, asked)
        for pool in self._pools:
            if pool.is_broken:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(
                    f"claim {claim.key}, request {request.short_name}: asks for all devices, but"
                    f" resource pool {pool.id} is currently {state}"
                )
            for device in pool.devices:
                self._check_time()
                if self._selects(request, device) and self._is_meant(request, device):
                    wanted.all_of.append(Candidate(pool, device))
        wanted.count = len(wanted.all_of)
        return wanted

    def _is_meant(self, request: Request, device: PoolDevice) -> bool:
        """Whether a request for all devices means one that it selects: one with capacity enough.

        In 1.37 whoever has shares of it does not matter for that, and the request fails later if
        nothing is left (kubernetes/kubernetes#140769).
        """
        taken = {} if self._features.searches_exactly else self._taken(device.id)
        return self._share(request, device, taken) is not None

    # The search: claims, their requests, alternatives, devices.

    def _claim(self, c: int) -> _Outcome:
        if c == len(self._claims):
            return _Outcome.FOUND
        return self._request(c, 0)

    def _request(self, c: int, r: int) -> _Outcome:
        choices = self._wanted[c]
        if r == len(choices):
            outcome = self._claim(c + 1)
            return _Outcome.NOT_FOUND if outcome is _Outcome.TOO_MANY else outcome
        outcome = _Outcome.TOO_MANY
        for index, wanted in enumerate(choices[r]):
            match self._devices(c, r, wanted, 0, Position()):
                case _Outcome.FOUND:
                    self._chosen[c][r] = index
                    return _Outcome.FOUND
                case _Outcome.NOT_FOUND:
                    outcome = _Outcome.NOT_FOUND
        return outcome

    def _devices(self, c: int, r: int, wanted: Wanted, number: int, start: Position) -> _Outcome:
        """Find device *number* and what comes after; candidates before *start* were tried."""
        self._check_time()
        if wanted.request.takes_all and not wanted.all_of:
            return _Outcome.NOT_FOUND
        if number >= wanted.count:
            return self._request(c, r + 1)
        if len(self._picks[c]) + wanted.count - number > MAX_DEVICES:
            return _Outcome.TOO_MANY
        if wanted.request.takes_all:
            return self._this_device(c, r, wanted, number)
        for position, candidate in self._candidates(c, wanted, start):
            self._check_time()
            if not self._is_eligible(c, wanted.request, candidate.found):
                continue
            undo = self._take(c, wanted.request, candidate, must=False)
            if undo is None:
                continue
            after = Position(position.pool, position.device + 1)
            outcome = self._devices(c, r, wanted, number + 1, after)
            if outcome is _Outcome.FOUND:
                return outcome
            undo()
            if outcome is _Outcome.TOO_MANY:
                return outcome
        self._count_devices()
        return _Outcome.NOT_FOUND

    def _candidates(
        self, c: int, wanted: Wanted, start: Position
    ) -> Iterator[tuple[Position, Candidate]]:
        """Yield the devices that may serve a request, and note of each pool which can.

        What is picked when the next one is wanted is the same each time.
        """
        known, next_device = self._known.by_pool(wanted.asked), start.device
        needed = self._needed_value(c, wanted.request)
        picked_from = {pick.found.id[:2] for picks in self._picks for pick in picks}
        for p in range(start.pool, len(self._working_pools)):
            pool = self._working_pools[p]
            usable = known.get(pool.id)
            if usable is None or usable.pool is not pool:
                yield from self._all_candidates(wanted, pool, Position(p, next_device))
            elif usable.devices:
                self._check_time()
                if needed is None or usable.have_value(*needed) or pool.id in picked_from:
                    for d, device in usable.devices:
                        if d >= next_device:
                            yield Position(p, d), Candidate(pool, device)
                elif usable.counting and not self._features.searches_exactly:
                    # QUIRK of 1.36: each is refused, but what it takes is set aside (see _take).
                    self._counters.put_off(pool, usable.counting)
            next_device = 0

    def _all_candidates(
        self, wanted: Wanted, pool: Pool, start: Position
    ) -> Iterator[tuple[Position, Candidate]]:
        """Yield the devices of a pool of which it is not known which can serve a request."""
        self._check_time()
        for d in range(start.device, len(pool.devices)):
            yield Position(start.pool, d), Candidate(pool, pool.devices[d])
        if not start.device:
            self._note_usable(wanted, pool)

    def _needed_value(self, c: int, request: Request) -> tuple[str, Typed] | None:
        """Return what the first constraint needs; others then do not hear of a refused device."""
        constraints = self._constraints[c]
        needed = needed_value(constraints[0], request.name) if constraints else None
        return None if needed is None or request.derives(needed[0]) else needed

    def _note_usable(self, wanted: Wanted, pool: Pool) -> None:
        """Remember which devices can serve a request when all have been asked."""
        if pool.differs_by_node or len(self._working_pools) == 1:
            return  # it depends on the node; it is searched again only when it has changed
        request, devices, counting = wanted.request, [], []
        for d, device in enumerate(pool.devices):
            if not request.has_admin_access and self._is_taken(device.id):
                continue
            if device.device.consumes_counters and not self._features.partitionable_devices:
                continue
            selected = self._selected.get((id(request), device.id))
            if selected is None or device.id in self._num_shares:
                return
            if not selected or self._share(request, device, self._taken(device.id)) is None:
                continue
            if self._counts(device):
                if not self._counters.could_take(pool, device):
                    continue
                counting.append(device)
            devices.append((d, device))
        self._known.note(wanted.asked, UsableDevices(pool, devices, counting))

    def _count_devices(self) -> None:
        """Give up at the first dead end if there are not devices enough.

        Without it the search tries every combination of those that there are. What it decides is
        left alone: where an expression fails, or counters stay set aside as in 1.36, the order of
        the search matters, and it goes on.
        """
        if self._has_counted:
            return
        self._has_counted = True
        is_exact = self._features.searches_exactly
        if not is_exact and any(pool.consumers for pool in self._working_pools):
            return
        choices = [choice for claim in self._wanted for choice in claim]
        if any(wanted.request.takes_all for choice in choices for wanted in choice):
            return
        try:
            demands = [
                self._demand(choice) for choice in choices if not choice[0].request.has_admin_access
            ]
            differ = all(
                self._differ_enough(choices, constraint)
                for choices, constraints in zip(self._wanted, self._constraints, strict=True)
                for constraint in constraints
            )
        except AllocationError:
            return
        if not differ or not are_enough(demands, on_step=self._check_time):
            raise _NotEnoughError

    def _differ_enough(self, choices: Sequence[Sequence[Wanted]], constraint: Constraint) -> bool:
        """Tell whether devices have as many values as *constraint* needs different ones."""
        needed, values = 0, set[Hashable]()
        for choice in choices:
            names = [must_differ(constraint, wanted.request.name) for wanted in choice]
            name = names[0]
            if name is None or None in names or any(w.request.derives(name) for w in choice):
                continue
            if choice[0].request.has_admin_access:  # may have devices that are taken
                continue
            needed += min(wanted.count for wanted in choice)
            for device in self._devices_of(choice):
                self._check_time()
                if any(self._may_serve(wanted.request, device) for wanted in choice):
                    attribute = attribute_of(device.device, device.id.driver, name)
                    values.add(None if attribute is None else attribute.typed)
        return needed <= len(values - {None})

    def _devices_of(self, choice: Sequence[Wanted]) -> Iterator[PoolDevice]:
        """Yield those that may serve one of the alternatives."""
        by_pool = [self._known.by_pool(wanted.asked) for wanted in choice]
        for pool in self._working_pools:
            known = [usable_of.get(pool.id) for usable_of in by_pool]
            usable = [devices for devices in known if devices is not None and devices.pool is pool]
            if len(usable) < len(known):
                yield from pool.devices
            else:
                devices_by_pool = (device for devices in usable for _, device in devices.devices)
                yield from dict.fromkeys(devices_by_pool)

    def _demand(self, choice: Sequence[Wanted]) -> Demand:
        """Return what a request needs at least; devices that others share serve every request."""
        count = min(wanted.count for wanted in choice)
        devices = set()
        for device in self._devices_of(choice):
            self._check_time()
            if not any(self._may_serve(wanted.request, device) for wanted in choice):
                continue
            if self._is_shared(device.device):
                count -= 1
            else:
                devices.add(device.id)
        return Demand(max(count, 0), frozenset(devices))

    def _may_serve(self, request: Request, device: PoolDevice) -> bool:
        return (
            not self._is_taken(device.id)
            and self._selects(request, device)
            and not self._is_tainted(request, device)
        )

    def _check_time(self) -> None:
        if self._is_late():
            raise SearchTimeoutError

    def _this_device(self, c: int, r: int, wanted: Wanted, number: int) -> _Outcome:
        """In mode All it is known which devices it must be."""
        undo = self._take(c, wanted.request, wanted.all_of[number], must=True)
        if undo is None:
            return _Outcome.NOT_FOUND
        outcome = self._devices(c, r, wanted, number + 1, Position())
        if outcome is not _Outcome.FOUND:
            undo()
        return outcome

    # One device.

    def _is_eligible(self, c: int, request: Request, device: PoolDevice) -> bool:
        return (
            self._is_free(c, request, device.id)
            and self._selects(request, device)
            and self._share(request, device, self._taken(device.id)) is not None
        )

    def _is_free(self, c: int, request: Request, id_: DeviceId) -> bool:
        """Admin access may have what others have, but not twice in one claim."""
        if request.has_admin_access:
            return c not in self._holders[id_]
        return not self._is_taken(id_) and not self._holders[id_]

    def _selects(self, request: Request, device: PoolDevice) -> bool:
        key = (id(request), device.id)
        answer = self._selected.get(key)
        if answer is None:
            answer = (
                self._is_supported(device)
                and request.selects(device, self._check_time)
                and device.is_for(self._node)
            )
            self._selected[key] = answer
        return answer

    def _is_supported(self, pool_device: PoolDevice) -> bool:
        """Whether devices like this one are given to anybody with the feature gates that are on."""
        features = self._features
        if pool_device.device.binding_conditions and not features.binding_conditions:
            return False
        if pool_device.groups and features.groups_need_gate and not features.compatibility_groups:
            return False
        return (
            features.partitionable_devices or not pool_device.slice.spec.per_device_node_selection
        )

    def _may_skip_operations(self, pool_device: PoolDevice) -> bool:
        """Whether nobody has to skip anything for the device, or the node's kubelet can."""
        features = self._features
        if not pool_device.slice.spec.skip_node_operations or not features.skipping_needs_gate:
            return True
        declared = self._node.status.declared_features
        return features.optional_node_operations and OPTIONAL_NODE_OPERATIONS in declared

    def _is_shared(self, device: Device) -> bool:
        return device.allow_multiple_allocations and self._features.consumable_capacity

    def _is_taken(self, id_: DeviceId) -> bool:
        """Whether somebody else has the device, so that nobody can share it."""
        if self._features.consumable_capacity:
            return self._in_use.is_dedicated(id_)
        return self._in_use.is_allocated(id_)

    def _taken(self, id_: DeviceId) -> Consumed:
        """Return what of a device's capacity is not left, by others and by this search."""
        taken = self._in_use.consumed(id_)
        more = self._consumed.get(id_)
        if more is None:
            return taken
        return {name: taken.get(name, 0) + more.get(name, 0) for name in taken.keys() | more.keys()}

    def _share(
        self, request: Request, pool_device: PoolDevice, taken: Consumed
    ) -> Quantities | None:
        """Return what the request would get of the device's capacity, None if that is not left."""
        device = pool_device.device
        if not self._features.consumable_capacity:
            return {}
        capacity = request.written.capacity
        if not device.capacity:
            return None if capacity and capacity.requests else {}
        requested = capacity.requests if capacity else {}
        return share_of(device.capacity, requested=requested, taken=taken, features=self._features)

    def _take(
        self, c: int, request: Request, candidate: Candidate, *, must: bool
    ) -> Callable[[], None] | None:
        """Pick a device that is selected; return the undo, or None if it cannot be had.

        QUIRK of 1.36 (kubernetes/kubernetes#140436): counters that were set aside for a device
        stay so, for the rest of the search on this node, when it then turns out to be tainted or
        against a constraint, and also when a device that others share is put back.
        """
        pool_device = candidate.found
        id_, device = pool_device.id, pool_device.device
        is_shared = self._is_shared(device)
        if not (is_shared and request.has_admin_access) and not self._is_free(c, request, id_):
            return None
        if device.consumes_counters and not self._features.partitionable_devices:
            return None
        if not self._may_skip_operations(pool_device):
            return None
        counts = self._counts(pool_device)
        if counts and not self._counters.take(candidate.pool, pool_device):
            return None
        is_exact = self._features.searches_exactly
        share = self._granted(c, request, pool_device, must=must)
        if share is None:
            if counts and is_exact:
                self._counters.put_back(candidate.pool, pool_device)
            return None
        if is_shared:
            self._consume(id_, share, 1)
        else:
            self._holders[id_].add(c)
        self._picks[c].append(Pick(request, pool_device, share if is_shared else None))

        def undo() -> None:
            self._picks[c].pop()
            self._release(c, request)
            if is_shared:
                self._consume(id_, share, -1)
            else:
                self._holders[id_].discard(c)
            if counts and (is_exact or not is_shared):
                self._counters.put_back(candidate.pool, pool_device)

        return undo

    def _granted(
        self, c: int, request: Request, pool_device: PoolDevice, *, must: bool
    ) -> Quantities | None:
        """Add the device to the claim's constraints; return what is had of its capacity.

        None, and nothing changes, if something is against it.
        """
        if self._is_tainted(request, pool_device) or not self._satisfies(
            c, request, pool_device, must=must
        ):
            return None
        share = self._share(request, pool_device, self._taken(pool_device.id))
        if share is None:  # only in mode All; else it was asked before
            self._release(c, request)
        return share

    def _is_tainted(self, request: Request, pool_device: PoolDevice) -> bool:
        tolerations, taints = request.written.tolerations, pool_device.device.taints
        if not taints or not self._features.device_taints:
            return False
        return bool(untolerated(taints, tolerations, effects=(NO_SCHEDULE, NO_EXECUTE)))

    def _satisfies(self, c: int, request: Request, pool_device: PoolDevice, *, must: bool) -> bool:
        """Add the device to the claim's constraints, to all or to none."""
        constraints = self._constraints[c]
        attributes = partial(self._attribute, request, pool_device)
        for i, constraint in enumerate(constraints):
            if constraint.add(request.name, attributes):
                continue
            for added in constraints[:i]:
                added.remove(request.name)
            if must:
                # A claim that wants all devices and constrains them makes no sense.
                raise AllocationError(
                    f"claim {self._claims[c].key}, request {request.short_name}: cannot add device"
                    f" {pool_device.id} because a claim constraint would not be satisfied"
                )
            return False
        return True

    def _attribute(
        self, request: Request, pool_device: PoolDevice, name: str
    ) -> DeviceAttribute | None:
        """Return what the request derives, else what the driver publishes (1.37 spec N4.9)."""
        if not request.derives(name):
            return attribute_of(pool_device.device, pool_device.id.driver, name)
        key = (id(request), pool_device.id, name)
        derived = self._derived.get(key)
        if derived is None:
            self._check_time()
            derived = self._derived[key] = request.derived(name, pool_device)
        return derived

    def _release(self, c: int, request: Request) -> None:
        for constraint in self._constraints[c]:
            constraint.remove(request.name)

    # Shares and counters.

    def _counts(self, pool_device: PoolDevice) -> bool:
        """Whether the device takes from counters, and nobody has a share of it already."""
        is_shared = self._is_shared(pool_device.device)
        return bool(pool_device.consumes) and not (
            is_shared and self._is_shared_already(pool_device.id)
        )

    def _is_shared_already(self, id_: DeviceId) -> bool:
        """Whether somebody has a share; in 1.36 only if that is some of the device's capacity."""
        if self._features.searches_exactly:
            return self._in_use.is_allocated(id_) or id_ in self._num_shares
        return self._in_use.is_consumed(id_) or id_ in self._consumed

    def _consume(self, id_: DeviceId, share: Quantities, sign: int) -> None:
        self._num_shares[id_] += sign
        if not self._num_shares[id_]:
            del self._num_shares[id_]
        consumed = self._consumed.setdefault(id_, {})
        for name, amount in share.items():
            consumed[name] = consumed.get(name, 0) + sign * parse(amount)
        if not any(consumed.values()):
            del self._consumed[id_]


def _constraints_of(claim: ClaimRequests, features: Features) -> Iterator[Constraint]:
    for i, written in enumerate(claim.claim.spec.devices.constraints):
        constraint = constraint_of(written, features)
        if constraint is None:
            raise AllocationError(
                f"claim {claim.key}, constraint #{i}: empty constraint"
                f" (unsupported constraint type?)"
            )
        yield constraint
