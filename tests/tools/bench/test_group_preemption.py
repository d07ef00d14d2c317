"""The benchmark of groups that preempt: those that fit find victims; how fast is not asserted."""

from berth.tools.bench.group_preemption import measure
from berth_plugins.registry import IN_TREE
from tests.tools.bench.test_groups import Ticking


async def test_a_gang_preempts_if_that_is_of_help() -> None:
    figures = [each async for each in measure(IN_TREE, clock=Ticking(), num_nodes=6, size=4)]
    evicted = [int(figure.outcome.split("/")[0]) for figure in figures if figure.outcome]
    assert evicted[0] > 0
    assert evicted[1] > 0
    assert evicted[2] == 0
