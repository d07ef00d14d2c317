"""What comes of placing pods anew."""

from app.whatif.answer import Move, Repacked
from app.whatif.placing import Placed
from app.whatif.world import World


def repacked(world: World, placed: Placed) -> Repacked:
    """Compare where the pods of *world* that were placed anew were, and are.

    Who has no node any more is among the unplaced of the outcome.
    """
    before, after = world.busy_before, world.busy_nodes()
    moves = (
        Move(pod=key, source=source, target=placed.nodes[key])
        for key, source in world.moving.items()
        if placed.nodes.get(key, source) != source
    )
    return Repacked(
        nodes_before=len(before),
        nodes_after=len(after),
        emptied=tuple(sorted(before - after)),
        pods=len(world.moving),
        moves=tuple(moves),
    )
