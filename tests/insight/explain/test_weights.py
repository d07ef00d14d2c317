"""The smallest changes of weights that change the node, as trying all weights finds them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.insight.explain.weights import LARGEST, weight_changes
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.profile.results import ScoreTable
from tests.builders import node

SCORES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 5)), min_size=2, max_size=6
)
WEIGHTS = st.tuples(st.integers(1, 5), st.integers(1, 60))


@given(SCORES, WEIGHTS)
def test_a_change_is_the_nearest_weight_with_which_another_node_is_better(
    scores: list[tuple[int, int, int]], weights: tuple[int, int]
) -> None:
    first, second, extenders = (np.array(column, np.int64) for column in zip(*scores, strict=True))
    normalized: dict[str, Ints] = {"First": first, "Second": second}
    by_name = dict(zip(normalized, weights, strict=True))
    weighted = {plugin: column * by_name[plugin] for plugin, column in normalized.items()}
    total = weighted["First"] + weighted["Second"] + extenders
    nodes = NodeTable()
    for i in range(len(scores)):
        nodes.add_node(node(f"n{i}"))
    rows = np.arange(len(scores))
    table = ScoreTable(rows, normalized, weighted, total, by_name, extenders)
    best = int(total.argmax())

    changes = weight_changes(table, nodes, nodes.name(best))

    wanted = {}
    for plugin, weight in by_name.items():
        for others in (range(weight - 1, -1, -1), range(weight + 1, LARGEST + 1)):
            for other in others:
                then = total + (other - weight) * normalized[plugin]
                if then.max() > then[best]:
                    wanted[plugin, other] = nodes.name(int(then.argmax()))
                    break
    assert {(c.plugin, c.other_weight): c.node for c in changes} == wanted
    distances = [abs(change.other_weight - change.weight) for change in changes]
    assert distances == sorted(distances)
