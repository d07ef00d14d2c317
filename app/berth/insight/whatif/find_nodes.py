"""The number of nodes that must be added."""

from collections.abc import Awaitable, Callable, Collection, Set

from berth.insight.whatif.answer import NodesNeeded
from berth.insight.whatif.placing import Placed, Placing
from berth.insight.whatif.question import FindNodes
from berth.insight.whatif.world import World
from berth.kube.objects.node import Node
from berth.kube.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, node_allocatable
from berth.scheduler.framework.pod_info import PodInfo


async def nodes_needed(
    world: World, placing: Placing, asked: FindNodes, *, without: Placed, goal: Set[str]
) -> NodesNeeded:
    """Find out how many nodes give every pod of *goal* a place, evicting nobody.

    *without* is what became of the pods without further nodes; nothing is placed now. Each number
    that is tried is simulated from the start, with the same pods in the same order; the cluster is
    left as it was. All nodes are there before the first pod is placed, so they take part in
    spreading; and so are the pods of DaemonSets that run on them.
    """
    cache = world.cluster.cache
    spare = world.new_nodes(asked, asked.most, at="findNodes")
    daemons: list[tuple[PodInfo, ...]] = []
    """Of the first of them."""
    pods = list(world.waiting)

    async def enough(number: int) -> bool:
        while len(daemons) < number:
            daemons.append(world.daemons_on(spare[len(daemons)], like=asked.like))
        added = spare[:number]
        for node, running in zip(added, daemons, strict=False):
            world.put_back(node, running)
        cache.refresh_order()
        placed = await placing.place_anew(pods)
        placing.take_back()
        for node in reversed(added):  # so that the same rows are given to the same nodes again
            world.take_node(node.name)
        cache.refresh_order()
        return not goal & placed.refusals.keys()

    short = [pod for pod in pods if pod.key in goal & without.refusals.keys()]
    if not short:
        return NodesNeeded(count=0, most=asked.most, tried={0: True})
    tried = {0: False}
    guess = min(
        max(_packed(short, spare[0], world.daemons_on(spare[0], like=asked.like)), 1), asked.most
    )
    count = await smallest(enough, guess=guess, most=asked.most, tried=tried)
    return NodesNeeded(count=count, most=asked.most, tried=dict(sorted(tried.items())))


async def smallest(
    enough: Callable[[int], Awaitable[bool]], *, guess: int, most: int, tried: dict[int, bool]
) -> int | None:
    """Return a number that is enough while one less is not; None if *most* is not enough.

    Looks around *guess* in growing steps, then between what is known; what was asked is noted in
    *tried*, where 0 must be known not to be enough.
    """

    async def ask(number: int) -> bool:
        if number not in tried:
            tried[number] = await enough(number)
        return tried[number]

    low, high, step = 0, most, 1
    if await ask(guess):
        high = guess
        while high - step > low and await ask(high - step):
            high, step = high - step, 2 * step
        low = max(high - step, low)
    else:
        low = guess
        while not await ask(high := min(low + step, most)):
            if high == most:
                return None
            low, step = high, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if await ask(middle) else (middle, high)
    return high


def _packed(pods: list[PodInfo], node: Node, daemons: Collection[PodInfo]) -> int:
    """Guess how many nodes like *node*, which run *daemons*, hold *pods*, as if each were of the
    first one's size.
    """
    has, wants = node_allocatable(node), pods[0].template.incoming_requested

    def free(name: str) -> int:
        taken = sum(daemon.template.requested.amount(name) for daemon in daemons)
        return max(has.amount(name) - taken, 0)

    per_node = [
        free(name) // wants.amount(name)
        for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *wants.scalars)
        if wants.amount(name)
    ]
    return -(-len(pods) // max(min(has.allowed_pods - len(daemons), *per_node), 1))
