"""The benchmark of groups that preempt: those that fit find victims; how fast is not asserted."""

from berth.bench.group_preemption import measure
from berth_plugins.registry import IN_TREE
from tests.bench.test_groups import Ticking


async def test_a_gang_preempts_if_that_is_of_help() -> None:
    figures = [each async for each in measure(IN_TREE, clock=Ticking(), num_nodes=6, size=4)]
    evicted = [int(each.outcome.split("/")[0]) for each in figures if each.outcome]
    assert evicted[0] > 0
    assert evicted[1] > 0
    assert evicted[2] == 0
