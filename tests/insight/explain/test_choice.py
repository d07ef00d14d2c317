"""Why this node and not the next best."""

import pytest

from berth.insight.explain.choice import choose
from berth.insight.explain.explanation import Choice, NodeScore, PluginScore
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explain


def scored(node: str, **plugins: int) -> NodeScore:
    return NodeScore(
        node=node,
        total=sum(plugins.values()),
        plugins={
            plugin: PluginScore(raw=weighted, normalized=weighted, weight=1, weighted=weighted)
            for plugin, weighted in plugins.items()
        },
    )


@pytest.mark.parametrize(
    ("scores", "want"),
    [
        pytest.param(
            [scored("n1", Fit=90, Spread=50), scored("n2", Fit=60, Spread=70)],
            Choice(
                node="n1",
                total=140,
                runner_up="n2",
                runner_up_total=130,
                decided_by="Fit",
                differences={"Fit": 30, "Spread": -20},
                words="n1 (140) before n2 (130): Fit makes the largest difference (+30)",
            ),
            id="the plugin that says most for it decides",
        ),
        pytest.param(
            [scored("n0", Fit=90, Spread=50), scored("n1", Fit=50, Spread=90)],
            Choice(
                node="n1",
                total=140,
                equals=1,
                runner_up="n0",
                runner_up_total=140,
                differences={"Fit": -40, "Spread": 40},
                words="n1 (140) before n0 (140): chance decides between 2 nodes with the same"
                " total",
            ),
            id="between equals nobody decides",
        ),
        pytest.param(
            [scored("n1", Fit=90)],
            Choice(node="n1", total=90, words="n1, the only node that fits"),
            id="one node, with scores",
        ),
        pytest.param(
            [], Choice(node="n1", words="n1, the only node that fits"), id="one node, unscored"
        ),
    ],
)
def test_choice(scores: list[NodeScore], want: Choice) -> None:
    assert choose("n1", scores, equals=want.equals) == want


@pytest.mark.parametrize("limit", range(14))
def test_the_best_nodes_by_total_and_name(limit: int) -> None:
    harness = Harness()
    harness.put(*(node(f"n{i:02}", cpu=1 + i % 4) for i in range(12)), pod("p", cpu="500m"))
    everything = explain(harness, "default/p").evaluation
    some = explain(harness, "default/p", limit=limit).evaluation
    assert everything is not None
    assert some is not None

    ranked = [(-each.score.total, each.node) for each in everything.nodes if each.score is not None]
    assert len(ranked) == 12
    assert ranked == sorted(ranked)
    assert some.nodes == everything.nodes[:limit]
    assert some.choice == everything.choice
