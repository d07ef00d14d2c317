"""What people see, to the letter."""

from berth.insight.explain.explanation import (
    Choice,
    Evaluation,
    Explanation,
    FilterStep,
    NearestMiss,
    NodeScore,
    NodeVerdict,
    Obstacle,
    PastDecision,
    PastPreemption,
    PluginScore,
    PodState,
    Victim,
    VictimsOnNode,
    Whereabouts,
)
from berth.insight.explain.tables import render
from berth.runtime.tables import as_text
from berth.scheduler.framework.change import Detail
from berth.scheduler.result import Result

MESSAGE = "0/4 nodes are available: 3 Insufficient cpu, 1 node(s) had untolerated taint(s)."

FIT = Obstacle(
    plugin="NodeResourcesFit",
    code="Unschedulable",
    reasons=("Insufficient cpu", "Insufficient memory"),
    details=(
        Detail("needs cpu 500m, free 320m of 4000m"),
        Detail("needs memory 2Gi, free 1.5Gi of 8Gi"),
    ),
)
TAINTED = Obstacle(
    plugin="TaintToleration",
    code="UnschedulableAndUnresolvable",
    reasons=("node(s) had untolerated taint(s)",),
    details=(Detail("taint dedicated=[gpu]:NoSchedule is not tolerated"),),
)
SILENT = Obstacle(plugin="Silent", code="Unschedulable", reasons=("not today",))

PENDING = Explanation(
    pod="default/p",
    uid="u",
    profile="default-scheduler",
    state=PodState(
        where=Whereabouts.UNSCHEDULABLE,
        words="waits until something changes",
        since="2001-09-09T01:46:40Z",
        until="2001-09-09T01:51:40Z",
        woken_by={"NodeResourcesFit": ("Node/Add", "Pod/Delete")},
    ),
    evaluation=Evaluation(
        message=MESSAGE,
        reasons={"Insufficient cpu": 3, "node(s) had untolerated taint(s)": 1},
        num_nodes=4,
        num_feasible=0,
        notes=("evaluated as if it were not gated",),
        funnel=(
            FilterStep(
                plugin="TaintToleration",
                num_rejected=1,
                num_left=3,
                num_against=1,
                num_only=0,
                reasons={"node(s) had untolerated taint(s)": 1},
            ),
            FilterStep(
                plugin="NodeResourcesFit",
                num_rejected=3,
                num_left=0,
                num_against=3,
                num_only=3,
                reasons={"Insufficient cpu": 3},
            ),
        ),
        nearest_miss=NearestMiss(
            node="n1", changes=(), is_complete=True, words="n1: free 180m more cpu"
        ),
        nodes=(
            NodeVerdict(node="n1", fits=False, obstacles=(FIT,)),
            NodeVerdict(
                node="n2",
                fits=False,
                obstacles=(TAINTED, SILENT),
                beside=("default/a", "default/b"),
            ),
            NodeVerdict(node="n3", fits=False),
        ),
    ),
    history=(
        PastDecision(
            number=7,
            result=Result.UNSCHEDULABLE,
            at="2001-09-09T01:46:40Z",
            pod="default/p",
            uid="u",
            profile="default-scheduler",
            attempt=2,
            seconds_ago=12.34,
            took_seconds=0.001,
            node="",
            message=MESSAGE,
            reasons={},
            nominated_node="n1",
            preemption=PastPreemption(
                chosen=VictimsOnNode(
                    node="n1",
                    victims=(
                        Victim(pod="default/a", priority=5, started=None),
                        Victim(pod="default/b", priority=1, started=None),
                    ),
                    num_victims=2,
                    pdb_violations=0,
                ),
                num_candidates=1,
                words="n1, the only node that evictions were found to help on",
            ),
            num_nodes=4,
            num_feasible=0,
        ),
    ),
)


def test_a_pending_pod() -> None:
    assert as_text(render(PENDING), width=160).splitlines() == [
        "pod           default/p",
        "profile       default-scheduler",
        "state         waits until something changes",
        "since         2001-09-09T01:46:40Z",
        "woken by      Node/Add, Pod/Delete (NodeResourcesFit)",
        "or else       tried again after 2001-09-09T01:51:40Z",
        "evicted       from n1: default/a (priority 5) and 1 more",
        "why those     n1, the only node that evictions were found to help on",
        "note          evaluated as if it were not gated",
        f"fits nowhere  {MESSAGE}",
        "filters       4 nodes; TaintToleration rejects 1, 3 left; NodeResourcesFit rejects 3,"
        " 0 left",
        "nearest miss  n1: free 180m more cpu",
        "",
        "node  verdict           why",
        "n1    NodeResourcesFit  needs cpu 500m, free 320m of 4000m;"
        " needs memory 2Gi, free 1.5Gi of 8Gi",
        "n2    TaintToleration   taint dedicated=[gpu]:NoSchedule is not tolerated",
        "      Silent            not today",
        "                        with default/a, default/b, nominated to it",
        "n3    not evaluated",
        "and 1 more of 4 nodes",
        "",
        "attempt  seconds ago  feasible nodes  outcome",
        f"2        12.3         0 of 4          {MESSAGE} Room is made on n1.",
    ]


def score(node: str, fit: int) -> NodeScore:
    taints = PluginScore(raw=0, normalized=100, weight=3, weighted=300)
    room = PluginScore(raw=fit, normalized=fit, weight=1, weighted=fit)
    return NodeScore(
        node=node,
        total=300 + fit,
        plugins={"TaintToleration": taints, "NodeResourcesFit": room},
    )


PLACED = Explanation(
    pod="default/p",
    uid="u",
    profile="default-scheduler",
    state=PodState(where=Whereabouts.ACTIVE, words="not tried yet: it is next"),
    evaluation=Evaluation(
        message="",
        reasons={},
        num_nodes=2,
        num_feasible=2,
        choice=Choice(
            node="n1",
            total=386,
            runner_up="n2",
            runner_up_total=373,
            decided_by="NodeResourcesFit",
            differences={"TaintToleration": 0, "NodeResourcesFit": 13},
            words="n1 (386) before n2 (373)",
        ),
        nodes=(
            NodeVerdict(node="n1", fits=True, score=score("n1", 86)),
            NodeVerdict(node="n2", fits=True, score=score("n2", 73)),
        ),
    ),
)


def test_a_pod_that_will_have_a_node() -> None:
    assert as_text(render(PLACED), width=160).splitlines() == [
        "pod          default/p",
        "profile      default-scheduler",
        "state        not tried yet: it is next",
        "would go to  n1 (386) before n2 (373)",
        "",
        "raw > normalised x weight  n1                 n2                 difference",
        "TaintToleration            0 > 100 x 3 = 300  0 > 100 x 3 = 300          +0",
        "NodeResourcesFit           86 > 86 x 1 = 86   73 > 73 x 1 = 73          +13",
        "total                      386                373                       +13",
        "",
        "node  verdict  why",
        "n1    fits     total 386",
        "n2    fits     total 373",
    ]


def test_the_chosen_node_alone() -> None:
    assert PLACED.evaluation is not None
    cut = PLACED.evaluation.model_copy(update={"nodes": PLACED.evaluation.nodes[:1]})
    text = as_text(render(PLACED.model_copy(update={"evaluation": cut})), width=160)

    assert text.splitlines()[5:] == [
        "raw > normalised x weight  n1",
        "TaintToleration            0 > 100 x 3 = 300",
        "NodeResourcesFit           86 > 86 x 1 = 86",
        "total                      386",
        "",
        "node  verdict  why",
        "n1    fits     total 386",
        "and 1 more of 2 nodes",
    ]


def test_a_pod_of_another_scheduler_has_no_tables() -> None:
    state = PodState(where=Whereabouts.FOREIGN, words="waits for another scheduler")
    told = Explanation(pod="default/p", uid="u", profile="other", state=state)

    assert as_text(render(told), width=160).splitlines() == [
        "pod      default/p",
        "profile  other",
        "state    waits for another scheduler",
    ]
