"""A model of members, slot Leases and the network between them, explored state by state.

Time goes in ticks. What a member knows and may do is :class:`berth.scheduler.shards.claims.Claims`
itself; which of the slots that it may take or leave it does is open, so whatever ``assignment``
wants is among what is explored. Steps of members come in every order, or never, as of a process
that is stopped for good. Every message may be lost, or be late: a compare-and-swap for ever, a bind
for ``DELAY`` ticks, which is what the fence of leader election leaves for writes on their way. The
answer to each may be lost, too.

Members are alike, and so are slots. So it is enough to look at binds of one member, the binder, to
one slot. What the others know of their own slots makes no difference to those binds: they take what
is free and give what names them at any moment, which is more than they would do.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple, TypeVar

from berth.scheduler.shards.claims import Claims, Leases, Renewal

T = TypeVar("T")

BINDER: Final = 0
SLOT: Final = 0
NOBODY: Final = -1

DELAY: Final = 1
"""Ticks after which a bind that was sent has arrived or never will."""


class Rules(NamedTuple):
    """The protocol; tests break one rule after the other."""

    members: int = 3
    slots: int = 2
    messages: int = 3
    """So many compare-and-swaps are on their way at most."""
    duration: int = 3
    """Ticks without a renewal after which others may expel a member, by their clocks."""
    write_limit: int = 1
    skew: int = 1
    """Ticks that a clock may be ahead of another's within the duration."""
    expels: bool = True
    """Whether a dead member's slots are taken only after its Lease was made to name nobody."""
    drains: bool = True
    """Whether a slot is given only after the last bind for it was answered."""
    returns: bool = False
    """Whether a member makes its Lease anew that was deleted after it was expelled."""
    counts_terms: bool = True
    """Whether a member ends that sees that somebody has scheduled alone since it joined. Its own
    Lease does not tell: to the binder that is as if it had been expelled."""
    holds_by_reading: bool = False
    """Whether a slot is held as soon as its Lease is read to name us."""


class Message(NamedTuple):
    """A compare-and-swap on its way; gone as soon as another changes its Lease."""

    kind: str
    """``renew`` or ``expel``, of the binder's Lease; or ``set``, of a slot's."""
    slot: int = NOBODY
    holder: int = NOBODY
    """Whom the Lease of the slot is made to name."""
    age: int = 0
    """Of a renewal, in ticks."""


class State(NamedTuple):
    holders: tuple[int, ...]
    """By slot, whom the Lease names."""
    seen: tuple[tuple[bool, int], ...]
    """By other member, whether it saw the binder's last renewal, and for how many ticks it has."""
    is_expelled: bool = False
    held: frozenset[int] = frozenset()
    leaving: frozenset[int] = frozenset()
    """What the binder holds, and of that what it is about to give."""
    renewed: int = 0
    """Ticks since the last renewal of the binder was sent that it knows to have arrived."""
    messages: frozenset[Message] = frozenset()
    bind: int | None = None
    """For how many ticks a bind has been on its way; one at most, for binds do not influence each
    other. ``ASTRAY``: it has arrived where another writes."""
    has_missed: bool = False
    """Whether somebody has scheduled alone meanwhile and the binder does not know."""


ASTRAY: Final = -1


class ViolationError(Exception):
    """Two write to a node; the message has the states that lead there."""


def explore(rules: Rules) -> int:
    """Visit all states that can be reached; return how many there are, or raise ViolationError."""
    start = State((NOBODY,) * rules.slots, ((True, 0),) * (rules.members - 1))
    came_from: dict[State, State | None] = {start: None}
    frontier = [start]
    while frontier:
        following: list[State] = []
        for state in frontier:
            for step in steps(state, rules):
                if step not in came_from:
                    came_from[step] = state
                    following.append(step)
                    if step.bind == ASTRAY:
                        raise ViolationError("\n".join(map(str, _path(came_from, step))))
        frontier = following
    return len(came_from)


def _path(came_from: dict[State, State | None], last: State) -> list[State]:
    path: list[State] = []
    state: State | None = last
    while state is not None:
        path.insert(0, state)
        state = came_from[state]
    return path


def steps(state: State, rules: Rules) -> Iterator[State]:
    """Yield what may come next."""
    yield from _tick(state, rules)
    yield from _deliveries(state, rules)
    if state.is_expelled and rules.returns:
        yield state._replace(is_expelled=False, renewed=0, seen=((False, 0),) * len(state.seen))
    yield from _bind_moves(state, rules)
    if len(state.messages) < rules.messages:
        if not any(message.kind == "renew" for message in state.messages):
            yield _sent(state, Message("renew"))
        yield from _binder_acts(state, rules)
        for other in range(1, rules.members):
            yield from _other_acts(state, other, rules)


def _sent(state: State, message: Message) -> State:
    return state._replace(messages=state.messages | {message})


def _tick(state: State, rules: Rules) -> Iterator[State]:
    if state.bind is not None and state.bind >= DELAY:
        return  # it arrives or is lost before
    older = state._replace(
        renewed=min(state.renewed + 1, rules.write_limit),
        bind=None if state.bind is None else state.bind + 1,
        messages=frozenset(
            m._replace(age=min(m.age + 1, rules.write_limit)) if m.kind == "renew" else m
            for m in state.messages
        ),
    )
    for ahead in {0, rules.skew}:
        # who has just seen a renewal may have a fast clock from then on
        seen = (
            (saw, min(age + 1 + (ahead if age == 0 else 0), rules.duration))
            for saw, age in state.seen
        )
        yield older._replace(seen=tuple(seen))


def _deliveries(state: State, rules: Rules) -> Iterator[State]:
    """Messages are lost, or arrive; of those that arrive the answer may be lost."""
    for message in state.messages:
        yield state._replace(messages=state.messages - {message})
        # all others that would change the same Lease do not arrive any more
        left = frozenset(m for m in state.messages if m.slot != message.slot)
        if message.kind == "set":
            holders = _with(state.holders, message.slot, message.holder)
            changed = state._replace(holders=holders, messages=left)
            yield changed
            if message.holder == BINDER:
                yield changed._replace(held=state.held | {message.slot})
        elif message.kind == "expel":
            yield state._replace(is_expelled=True, messages=left)
            if not rules.counts_terms:
                yield state._replace(has_missed=True, messages=left)
        elif not state.is_expelled:
            unseen = state._replace(seen=((False, 0),) * len(state.seen), messages=left)
            yield unseen
            yield unseen._replace(renewed=min(message.age, state.renewed))


def _bind_moves(state: State, rules: Rules) -> Iterator[State]:
    """A bind leaves, for which the fence is asked last; is lost; or arrives."""
    if state.bind is not None:
        yield state._replace(bind=None)
        if state.holders[SLOT] != BINDER or state.has_missed:
            yield state._replace(bind=ASTRAY)
    elif state.renewed < rules.write_limit and SLOT in state.held - state.leaving:
        yield state._replace(bind=0)


def _binder_acts(state: State, rules: Rules) -> Iterator[State]:
    """The binder reads all Leases and does one thing about them."""
    held, leaving, take, give = _read(
        state.holders, state.held, state.leaving, state.is_expelled, rules
    )
    read = state._replace(held=held, leaving=leaving)
    yield read
    for slot in take:
        yield _sent(read, Message("set", slot, BINDER))
    for slot in held - leaving:
        yield read._replace(leaving=leaving | {slot})
    for slot in give:
        if slot != SLOT or state.bind is None or not rules.drains:
            given = read._replace(held=held - {slot}, leaving=leaving - {slot})
            yield _sent(given, Message("set", slot))


def _other_acts(state: State, other: int, rules: Rules) -> Iterator[State]:
    """Another member reads all Leases and does one thing about them."""
    saw, age = state.seen[other - 1]
    is_gone = state.is_expelled or (not rules.expels and saw and age >= rules.duration)
    age, may_expel, take = _look(other, saw, age, state.holders, is_gone, rules)
    read = state._replace(seen=_with(state.seen, other - 1, (True, age)))
    yield read
    if may_expel:
        yield _sent(read, Message("expel"))
    for slot in take:
        yield _sent(read, Message("set", slot, other))
    for slot, holder in enumerate(state.holders):
        if holder == other:
            yield _sent(read, Message("set", slot))


@cache
def _read(
    holders: tuple[int, ...],
    held: frozenset[int],
    leaving: frozenset[int],
    is_expelled: bool,
    rules: Rules,
) -> tuple[frozenset[int], frozenset[int], list[int], list[int]]:
    """Return what the binder holds and leaves once it has read, may take and may give."""
    leases = _leases(holders, rules, is_expelled=is_expelled)
    claims = Claims(str(BINDER), rules.duration, held, leaving).saw(leases, 0)
    names_us = [slot for slot in range(rules.slots) if leases.holder(slot) == claims.me]
    if rules.holds_by_reading:
        claims = Claims(str(BINDER), rules.duration, claims.held.union(names_us), claims.leaving)
    strays = [slot for slot in names_us if slot not in claims.held]
    take = [slot for slot in range(rules.slots) if claims.may_take(slot, leases)]
    return claims.held, claims.leaving, take, [*claims.leaving, *strays]


@cache
def _look(
    other: int,
    saw: bool,
    age: int,
    holders: tuple[int, ...],
    is_gone: bool,
    rules: Rules,
) -> tuple[int, bool, list[int]]:
    """Return how long another has seen the binder's renewal once it has looked, whether it may
    expel the binder, and which slots it may take."""
    leases = _leases(holders, rules, is_expelled=is_gone)
    known = {str(BINDER): Renewal("now" if saw else "before", -age)}
    claims = Claims(str(other), rules.duration, others=known).saw(leases, 0)
    renewal = claims.others.get(str(BINDER))
    take = [slot for slot in range(rules.slots) if claims.may_take(slot, leases)]
    new_age = age if renewal is None else int(-renewal.seen_at)
    return new_age, str(BINDER) in claims.expired(0), take


def _leases(holders: tuple[int, ...], rules: Rules, *, is_expelled: bool) -> Leases:
    members = {str(member): "now" for member in range(rules.members)}
    if is_expelled:
        del members[str(BINDER)]
    return Leases(["" if holder == NOBODY else str(holder) for holder in holders], members)


def _with(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
