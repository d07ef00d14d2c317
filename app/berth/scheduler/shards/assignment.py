"""Who should hold which slot."""

from collections import Counter
from collections.abc import Collection, Sequence
from zlib import crc32


def assignment(holders: Sequence[str], members: Collection[str], *, pools: int = 0) -> list[str]:
    """Return by slot the member that should hold it.

    The last *pools* slots are for those members alone that :func:`pool_of` says are for them, and
    the others for the others.
    """
    number = len(holders) - pools
    wanted = _even(holders[:number], {m for m in members if pool_of(m) is None})
    for pool, holder in enumerate(holders[number:]):
        wanted += _even([holder], {m for m in members if pool_of(m) == pool})
    return wanted


def for_pool(identity: str, pool: int) -> str:
    """Return the identity of a member that is for the slot of a pool alone, counted from 0."""
    return f"{identity}.pool{pool}"


def pool_of(member: str) -> int | None:
    """Return the pool that *member* is for; None if it is for none."""
    _, is_for_pool, pool = member.rpartition(".pool")
    return int(pool) if is_for_pool and pool.isdecimal() else None


def _even(holders: Sequence[str], members: Collection[str]) -> list[str]:
    """Share out slots.

    *holders* are those that hold the slots now, "" for nobody; whoever is not among *members*
    counts as nobody. No two shares differ by more than one slot, and as few slots change hands as
    that allows. All who see the same come to the same; whoever sees something else may want
    another slot at worst, of which the Lease has one holder all the same.
    """
    if not members:
        return [""] * len(holders)
    counts = Counter(holder for holder in holders if holder in members)
    in_order = sorted(members, key=lambda member: (-counts[member], member))
    low, extra = divmod(len(holders), len(in_order))
    shares = {member: low + (place < extra) for place, member in enumerate(in_order)}
    wanted = [""] * len(holders)
    for slot in sorted(range(len(holders)), key=lambda slot: (_rank(holders[slot], slot), slot)):
        holder = holders[slot]
        if shares.get(holder):
            wanted[slot] = holder
            shares[holder] -= 1
    left = (member for member, share in shares.items() for _ in range(share))
    return [member or next(left) for member in wanted]


def _rank(member: str, slot: int) -> int:
    """Return in which order a member keeps its slots when it has too many: as if by chance."""
    return crc32(f"{member}/{slot}".encode())
