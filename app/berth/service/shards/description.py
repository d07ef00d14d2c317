"""What a replica knows of all replicas, for ``/debug/shards``."""

from collections.abc import Mapping

from berth.kube.objects.pod import Pod
from berth.runtime.clock import rfc3339
from berth.scheduler.shards.assignment import pool_of
from berth.scheduler.shards.parts import ShardParts
from berth.scheduler.shards.slots import NO_SLOT
from berth.service.server.scheduler.debug.models import ShardChange, ShardMember, Shards, SlotOf
from berth.service.shards.keeper import Keeper


def describe(
    keeper: Keeper,
    parts: ShardParts,
    pods: Mapping[str, Pod],
    node: str,
    pod: str,
) -> Shards:
    """Describe the shards; also whose *node* is, and *pod* of *pods* by ``namespace/name``.

    KeyError if there is no such pod.
    """
    ownership, leases = parts.ownership, keeper.seen
    slots = range(ownership.slots.total)
    held = {
        member: [slot for slot in slots if leases.holder(slot) == member]
        for member in sorted(leases.members)
    }

    def of(slot: int) -> SlotOf:
        member = "" if slot == NO_SLOT else leases.holder(slot)
        return SlotOf(slot=slot, member=member)

    def member(name: str, slots: list[int]) -> ShardMember:
        pool = pool_of(name)
        return ShardMember(
            identity=name,
            slots=slots,
            pool="" if pool is None else ownership.slots.pools[pool],
            silent_seconds=keeper.silent_for(name),
        )

    asked = pods[pod] if pod else None
    waits = asked is not None and not asked.spec.node_name
    return Shards(
        identity=keeper.claims.me,
        slots=ownership.slots.total,
        deciding=sorted(ownership.active),
        leaving=sorted(keeper.claims.leaving),
        members=[member(name, of_name) for name, of_name in held.items()],
        free=[slot for slot in slots if not leases.holder(slot)],
        label=ownership.slots.label,
        changes=[
            ShardChange(
                at=rfc3339(change.at), what=change.what, slot=change.slot, member=change.member
            )
            for change in reversed(keeper.changes)
        ],
        offers_under_way=len(parts.offers.pods),
        node=of(ownership.slot_of_node(node)) if node else None,
        pod=of(parts.slot_of_pod(asked)) if asked is not None and waits else None,
    )
