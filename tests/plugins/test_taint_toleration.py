"""TaintToleration: filter, score and hints."""

import pytest

from berth.kube.objects.node import Node, Taint
from berth.kube.objects.pod import Pod, Toleration
from berth.kube.objects.taints import COMPARISONS
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import QueueingHint
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.taint_toleration import (
    UNTOLERATED,
    TaintToleration,
    after_toleration_change,
)
from tests.builders import node, pod, taint, toleration
from tests.plugins.evaluating import final_scores, raw_scores, rejected, table, verdicts

GPU = taint("gpu", "yes")
SOFT = taint("gpu", "yes", effect="PreferNoSchedule")
EVICTING = taint("gpu", "yes", effect="NoExecute")


@pytest.mark.parametrize(
    ("taints", "tolerations", "want"),
    [
        pytest.param([], [], None, id="no taints"),
        pytest.param([GPU], [], UNTOLERATED, id="nothing is tolerated"),
        pytest.param([EVICTING], [], UNTOLERATED, id="NoExecute repels too"),
        pytest.param([SOFT], [], None, id="PreferNoSchedule does not repel"),
        pytest.param([GPU], [toleration("gpu", "yes")], None, id="equal key and value"),
        pytest.param([GPU], [toleration("gpu", "no")], UNTOLERATED, id="another value"),
        pytest.param([GPU], [toleration("gpu")], None, id="the key exists"),
        pytest.param([GPU], [toleration()], None, id="everything is tolerated"),
        pytest.param(
            [GPU], [toleration("gpu", effect="NoExecute")], UNTOLERATED, id="another effect"
        ),
        pytest.param([GPU, taint("b")], [toleration("gpu")], UNTOLERATED, id="one of two taints"),
        pytest.param(
            [GPU, taint("b")], [toleration("gpu"), toleration("b")], None, id="each has its own"
        ),
        pytest.param(
            [taint("age", "3")],
            [toleration("age", "4", operator="Lt")],
            UNTOLERATED,
            id="comparisons are behind a gate",
        ),
    ],
)
def test_filter(taints: list[Taint], tolerations: list[Toleration], want: Status | None) -> None:
    nodes = table(node("plain"), node("tainted", taints=taints))
    answers = verdicts(TaintToleration(), pod(tolerations=tolerations), nodes)
    assert answers == {"plain": None, "tainted": want}


@pytest.mark.parametrize(
    ("operator", "bound", "value", "want"),
    [
        pytest.param("Lt", "8", "4", None, id="less"),
        pytest.param("Lt", "4", "4", UNTOLERATED, id="equal is not less"),
        pytest.param("Gt", "3", "4", None, id="more"),
        pytest.param("Lt", "8", "04", UNTOLERATED, id="a taint that is no canonical number"),
    ],
)
def test_comparisons_with_their_gate(
    operator: str, bound: str, value: str, want: Status | None
) -> None:
    nodes = table(node("n", taints=[taint("gpu-count", value)]))
    plugin = TaintToleration(None, Handle(nodes, features=Features.of(COMPARISONS)))
    a_pod = pod(tolerations=[toleration("gpu-count", bound, operator=operator)])
    assert verdicts(plugin, a_pod, nodes) == {"n": want}
    soft = table(node("n", taints=[taint("gpu-count", value, effect="PreferNoSchedule")]))
    assert raw_scores(plugin, a_pod, soft) == {"n": int(want is not None)}
    [registered, _] = plugin.events_to_register()
    assert registered.hint is not None
    hint = registered.hint(a_pod, None, node(taints=[taint("gpu-count", value)]))
    assert hint is (QueueingHint.QUEUE if want is None else QueueingHint.SKIP)


def test_scores_count_untolerated_soft_taints_and_are_reversed() -> None:
    other = taint("other", effect="PreferNoSchedule")
    more = taint("more", effect="PreferNoSchedule")
    nodes = table(
        node("none"),
        node("hard", taints=[GPU]),
        node("tolerated", taints=[SOFT]),
        node("one", taints=[SOFT, other]),
        node("two", taints=[other, more]),
        node("three", taints=[other, more, taint("x", effect="PreferNoSchedule")]),
    )
    a_pod = pod(tolerations=[toleration("gpu", effect="PreferNoSchedule")])
    plugin = TaintToleration()
    assert raw_scores(plugin, a_pod, nodes) == {
        "none": 0,
        "hard": 0,
        "tolerated": 0,
        "one": 1,
        "two": 2,
        "three": 3,
    }
    assert final_scores(plugin, a_pod, nodes) == {
        "none": 100,
        "hard": 100,
        "tolerated": 100,
        "one": 67,
        "two": 34,
        "three": 0,
    }


def test_a_toleration_for_hard_taints_does_not_help_with_soft_ones() -> None:
    nodes = table(node("soft", taints=[SOFT]))
    a_pod = pod(tolerations=[toleration("gpu", effect="NoSchedule")])
    assert raw_scores(TaintToleration(), a_pod, nodes) == {"soft": 1}


def test_without_soft_taints_every_node_gets_all() -> None:
    nodes = table(node("a"), node("b", taints=[GPU]))
    assert final_scores(TaintToleration(), pod(), nodes) == {"a": 100, "b": 100}


def test_taints_that_appear_later_are_evaluated_for_a_known_template() -> None:
    plugin, first, second = TaintToleration(), pod("a"), pod("b")
    nodes = table(node("n1"), node("n2", taints=[GPU]))
    kept = PodInfo(first)  # holds the template
    assert rejected(plugin, first, nodes) == {"n2"}
    nodes.set_node(nodes.row_of["n1"], node("n1", taints=[taint("late"), SOFT]))
    assert rejected(plugin, second, nodes) == {"n1", "n2"}
    assert raw_scores(plugin, second, nodes) == {"n1": 1, "n2": 0}
    assert PodInfo(second).template is kept.template


def test_one_template_is_evaluated_on_two_clusters() -> None:
    plugin, a_pod = TaintToleration(), PodInfo(pod())
    one = table(node("n", taints=[GPU]))
    other = table(node("n", taints=[SOFT]), node("m", taints=[GPU]))
    for _ in range(2):
        assert rejected(plugin, a_pod.pod, one) == {"n"}
        assert rejected(plugin, a_pod.pod, other) == {"m"}


def test_pre_score_never_skips() -> None:
    assert TaintToleration().pre_score(CycleState(), PodInfo(pod()), table()) is None


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, node(), QueueingHint.QUEUE, id="a node came"),
        pytest.param(None, node(taints=[GPU]), QueueingHint.SKIP, id="a node came that repels"),
        pytest.param(node(taints=[GPU]), node(), QueueingHint.QUEUE, id="it repels no more"),
        pytest.param(
            node(taints=[GPU]), node(taints=[SOFT]), QueueingHint.QUEUE, id="only softly now"
        ),
        pytest.param(
            node(taints=[GPU]), node(taints=[EVICTING]), QueueingHint.SKIP, id="it still repels"
        ),
        pytest.param(node(), node(taints=[SOFT]), QueueingHint.SKIP, id="it never did"),
    ],
)
def test_node_hint(old: Node | None, new: Node, want: QueueingHint) -> None:
    [registered, _] = TaintToleration().events_to_register()
    assert registered.hint is not None
    assert registered.hint(pod(tolerations=[toleration("x")]), old, new) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(pod("p"), QueueingHint.QUEUE, id="this pod"),
        pytest.param(pod("q"), QueueingHint.SKIP, id="another pod"),
    ],
)
def test_toleration_hint(new: Pod, want: QueueingHint) -> None:
    assert after_toleration_change(pod("p"), pod("p"), new) is want
