"""What is decided here, beside what was chosen elsewhere."""

from dataclasses import dataclass

import numpy as np
import pytest

from berth.insight.explain.comparison import Agreement, Chosen, Comparison, compare
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import FilterPlugin, ScorePlugin, Scores
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import PASS, Verdict
from berth.scheduler.schedule_pod import evaluate_pod, smallest_name
from tests.builders import node, pod, taint
from tests.harness import with_plugins


class Labelled(ScorePlugin):
    """Gives a node the points of its label."""

    NAME = "Labelled"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        points = np.zeros(nodes.size, np.int64)
        for name, row in nodes.row_of.items():
            found = nodes.nodes[row]
            assert found is not None, name
            points[row] = int(found.metadata.labels.get("points", 0))
        return points


class Broken(FilterPlugin):
    """Fails on pods that are called broken."""

    NAME = "Broken"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        if pod.pod.metadata.name == "broken":
            return Verdict.reject(Status.error("no idea"), where=nodes.exists)
        return PASS


def compared(asked: Pod, chosen: Chosen, *objects: Node | Pod) -> Comparison:
    harness = with_plugins(Labelled, Broken)
    harness.put(*objects)
    profile = harness.scheduler.profiles["default-scheduler"]
    nominator = harness.queue.nominator
    cycle = Cycle.begin(profile, PodInfo(asked), cache=harness.cache, nominator=nominator)
    outcome = evaluate_pod(cycle, select=smallest_name(cycle.nodes))
    return compare(outcome, cycle.nodes, chosen)


@dataclass
class Want:
    result: Agreement
    words: str
    node: str = ""
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    equals: int = 0
    num_better: int = 0
    same_reasons: bool | None = None


BEST, GOOD, BAD = (
    node(name, labels={"points": points})
    for name, points in {"best": "90", "good": "60", "bad": "10"}.items()
)
FULL = "0/1 nodes are available: 1 Insufficient cpu."
NO_HELP = (
    " no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful"
    " for scheduling."
)


@pytest.mark.parametrize(
    ("asked", "chosen", "objects", "want"),
    [
        pytest.param(
            pod(),
            Chosen("best"),
            [BEST, GOOD],
            Want(Agreement.AGREED, "default/p goes to best (487)", node="best"),
            id="the best node was chosen",
        ),
        pytest.param(
            pod(),
            Chosen("other"),
            [BEST, node("other", labels={"points": "90"}), BAD],
            Want(
                Agreement.TIE,
                "default/p went to other, one of 2 nodes that are best here (487)",
                node="best",
                equals=1,
            ),
            id="one of the best nodes was chosen, whichever is taken here",
        ),
        pytest.param(
            pod(),
            Chosen("bad"),
            [BEST, GOOD, BAD],
            Want(
                Agreement.DIFFERED,
                "default/p went to bad (407); here best (487) is better: Labelled makes the"
                " largest difference (+80)",
                node="best",
                plugin="Labelled",
                num_better=2,
            ),
            id="a node with fewer points was chosen",
        ),
        pytest.param(
            pod(),
            Chosen("tainted"),
            [BEST, node("tainted", taints=[taint("gpu")])],
            Want(
                Agreement.REFUSED,
                "default/p went to tainted, which is refused here by TaintToleration: node(s) had"
                " untolerated taint(s); here best is best",
                node="best",
                plugin="TaintToleration",
                reasons=("node(s) had untolerated taint(s)",),
            ),
            id="a node was chosen that a filter refuses",
        ),
        pytest.param(
            pod(cpu="9"),
            Chosen("best"),
            [BEST],
            Want(
                Agreement.REFUSED,
                "default/p went to best, which is refused here by NodeResourcesFit:"
                " Insufficient cpu; here the pod fits nowhere",
                plugin="NodeResourcesFit",
                reasons=("Insufficient cpu",),
            ),
            id="a node was chosen though the pod fits nowhere",
        ),
        pytest.param(
            pod(),
            Chosen("unheard-of"),
            [BEST],
            Want(
                Agreement.REFUSED,
                "default/p went to unheard-of, which is refused here: the node is not known here;"
                " here best is best",
                node="best",
                reasons=("the node is not known here",),
            ),
            id="a node was chosen that is not known",
        ),
        pytest.param(
            pod(cpu="9"),
            Chosen(message=f"{FULL}{NO_HELP}"),
            [BEST],
            Want(
                Agreement.NOWHERE,
                f"default/p fits nowhere, here and there: {FULL}",
                same_reasons=True,
            ),
            id="it fits nowhere, for the same reasons, whatever preemption said",
        ),
        pytest.param(
            pod(cpu="9"),
            Chosen(message="0/2 nodes are available: 2 Insufficient cpu."),
            [BEST],
            Want(
                Agreement.NOWHERE,
                f"default/p fits nowhere, here and there, but for other reasons: {FULL} (there:"
                " 0/2 nodes are available: 2 Insufficient cpu.)",
                same_reasons=False,
            ),
            id="it fits nowhere, for other reasons",
        ),
        pytest.param(
            pod(cpu="9"),
            Chosen(),
            [BEST],
            Want(Agreement.NOWHERE, "default/p fits nowhere, here and there"),
            id="it fits nowhere, and why is not known",
        ),
        pytest.param(
            pod(),
            Chosen(message=FULL),
            [BEST],
            Want(
                Agreement.NOT_PLACED,
                f"default/p fits best here, and was placed nowhere: {FULL}",
                node="best",
            ),
            id="it fits here only",
        ),
        pytest.param(
            pod("broken"),
            Chosen("best"),
            [BEST],
            Want(
                Agreement.FAILED,
                'default/broken cannot be decided here: running "Broken" filter'
                " plugin: no idea (node best)",
            ),
            id="a plugin fails",
        ),
        pytest.param(
            pod(nominated="bad", priority=1),
            Chosen("best"),
            [BEST, BAD],
            Want(
                Agreement.DIFFERED,
                "default/p went to best; here it is nominated to bad, which fits",
                node="bad",
            ),
            id="another node than the nominated one was chosen",
        ),
    ],
)
def test_comparison(asked: Pod, chosen: Chosen, objects: list[Node | Pod], want: Want) -> None:
    found = compared(asked, chosen, *objects)

    assert found.chosen == chosen.node
    assert Want(**{field: getattr(found, field) for field in Want.__dataclass_fields__}) == want


def test_both_nodes_have_their_points_by_plugin() -> None:
    found = compared(pod(), Chosen("bad"), BEST, BAD)

    assert found.score is not None
    assert found.chosen_score is not None
    assert found.score.plugins["Labelled"].weighted == 90
    assert found.chosen_score.plugins["Labelled"].weighted == 10
    assert found.differences == {
        plugin: score.weighted - found.chosen_score.plugins[plugin].weighted
        for plugin, score in found.score.plugins.items()
    }
    assert sum(found.differences.values()) == found.score.total - found.chosen_score.total


def test_agreements_are_told_from_differences() -> None:
    assert {each for each in Agreement if each.is_agreement} == {"agreed", "tie", "nowhere"}
