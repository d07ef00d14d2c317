"""InterPodAffinity keeps counts from pod to pod, and is right whatever happens in between."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from tests.plugins.churn import Churn
from tests.plugins.inter_pod_affinity.affinity_evaluating import Rule, plugin, raw_scores, verdicts
from tests.plugins.inter_pod_affinity.test_rule import NAMESPACES, clusters, pods

STEPS = 12


@settings(max_examples=50)
@given(
    st.lists(pods(), min_size=1, max_size=3),
    clusters(),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_answers_follow_the_rule_all_the_time(
    waiting: list[Pod], cluster: tuple[list[Node], list[Pod]], rng: Random, fast: bool
) -> None:
    churn, affinity = Churn(*cluster), plugin(namespaces=NAMESPACES, fast=fast)
    for _ in range(STEPS):
        churn.step(rng)
        new = rng.choice(waiting)
        rule = Rule(new, churn.nodes, churn.pods, NAMESPACES, fast=fast)
        want = {node.name: rule.verdict(node) for node in churn.nodes}
        got = verdicts(affinity, new, churn.table)
        assert (got or dict.fromkeys(want)) == want
        assert (got is None) == rule.skips()
        assert raw_scores(affinity, new, churn.table) == rule.scores()
