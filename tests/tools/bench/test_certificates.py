"""Certificates of clusters of which the best is known; a part of ``berth bench certificates``."""

import pytest

from berth.insight.certificate.problem import Limits
from berth.insight.certificate.repacking import prove_repacking
from berth.insight.certificate.solver_process import is_installed
from berth.insight.whatif.question import Question
from berth.tools.bench import certificates
from berth.tools.bench.planted import planted
from berth_plugins.registry import IN_TREE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.wall,
    pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed"),
]


@pytest.mark.parametrize("variant", ["plain", "anti-affinity"])
def test_certificates_of_planted_clusters_are_right(variant: str) -> None:
    cluster = planted(50, variant, 3)
    certificate = prove_repacking(
        Question(repack=True), cluster.snapshot, IN_TREE, Limits(seconds=10)
    )
    [number] = certificate.numbers
    assert number.value is not None
    assert certificate.before is not None
    assert number.bound <= cluster.fewest <= number.value
    assert certificate.before == 50
    assert number.value < 50


async def test_full_clusters_are_compared() -> None:
    full = certificates.Full(nodes=4, pods_per_node=4, priorities=2, usage=95, seed=0)
    running, waiting = await certificates.scheduled(full, IN_TREE)
    assert len(running) + len(waiting) == 16
    comparison = certificates.Comparison()
    await certificates.compare(full, IN_TREE, running, waiting, 5.0, comparison)
    assert (comparison.failures, comparison.dropped) == (1, 0)
    assert comparison.better + comparison.proven <= 1
