"""InterPodAffinity with InterPodAffinityHostnameFastPath (1.37 spec N12.3)."""

from collections.abc import Sequence

import numpy as np
import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.inter_pod_affinity.plugin import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    HOSTNAME_FAST_PATH,
    InterPodAffinity,
)
from tests.builders import HOSTNAME, ZONE, node, pod, pod_affinity, pod_anti_affinity, pod_term
from tests.harness import Harness
from tests.plugins.evaluating import table
from tests.plugins.inter_pod_affinity.affinity_evaluating import plugin, verdicts
from tests.plugins.inter_pod_affinity.test_rule import without
from tests.scheduler.metrics.reading import counted
from tests.scheduler.metrics.world import export_everything

NODES = (
    node("a", zone="z"),
    node("twin", labels={HOSTNAME: "a"}, zone="z"),
    node("b"),
    without(node("unlabelled", zone="z"), HOSTNAME),
)
WEB = {"app": "web"}
NEAR, NEAR_BY_ZONE = pod_term(WEB, key=HOSTNAME), pod_term(WEB, key=ZONE)
FOLLOWS = pod(labels=WEB, affinity=pod_affinity(required=[NEAR]))
FOLLOWS_IN_ZONE = pod(labels=WEB, affinity=pod_affinity(required=[NEAR, NEAR_BY_ZONE]))
AVOIDS = pod(affinity=pod_anti_affinity(required=[NEAR]))

Verdicts = dict[str, Status | None] | None


def web(on: str, name: str = "web") -> Pod:
    return pod(name, labels=WEB, node=on)


def keeps_off(key: str, on: str) -> Pod:
    return pod("alone", node=on, affinity=pod_anti_affinity(required=[pod_term(WEB, key=key)]))


def told(
    a: Status | None, twin: Status | None, b: Status | None, unlabelled: Status | None
) -> Verdicts:
    return {"a": a, "twin": twin, "b": b, "unlabelled": unlabelled}


@pytest.mark.parametrize(
    ("a_pod", "running", "off", "on"),
    [
        pytest.param(
            FOLLOWS,
            [web("a")],
            told(None, None, AFFINITY, AFFINITY),
            told(None, AFFINITY, AFFINITY, AFFINITY),
            id="nodes of one host name, affinity",
        ),
        pytest.param(
            AVOIDS,
            [web("a")],
            told(ANTI_AFFINITY, ANTI_AFFINITY, None, None),
            told(ANTI_AFFINITY, None, None, None),
            id="nodes of one host name, anti-affinity",
        ),
        pytest.param(
            pod(labels=WEB),
            [keeps_off(HOSTNAME, "a")],
            told(EXISTING_ANTI_AFFINITY, EXISTING_ANTI_AFFINITY, None, None),
            told(EXISTING_ANTI_AFFINITY, None, None, None),
            id="nodes of one host name, anti-affinity of a running pod",
        ),
        pytest.param(
            FOLLOWS,
            [web("unlabelled")],
            told(None, None, None, AFFINITY),
            told(AFFINITY, AFFINITY, AFFINITY, AFFINITY),
            id="a pod on a node without the label comes before the first",
        ),
        pytest.param(
            FOLLOWS,
            [],
            told(None, None, None, AFFINITY),
            told(None, None, None, AFFINITY),
            id="the first of a series goes where there is the label",
        ),
        pytest.param(
            FOLLOWS_IN_ZONE,
            [web("a")],
            told(None, None, AFFINITY, AFFINITY),
            told(None, None, AFFINITY, AFFINITY),
            id="terms of several keys: a host name is a domain",
        ),
        pytest.param(
            AVOIDS,
            [web("unlabelled")],
            told(None, None, None, None),
            told(None, None, None, None),
            id="nothing to avoid on a node without the label",
        ),
        pytest.param(
            pod(),
            [keeps_off(HOSTNAME, "a")],
            None,
            told(None, None, None, None),
            id="not skipped while a pod keeps others off its node, be it not this one",
        ),
        pytest.param(
            pod(labels=WEB),
            [keeps_off(HOSTNAME, "unlabelled")],
            None,
            told(None, None, None, None),
            id="not skipped, even if that is a node without the label",
        ),
        pytest.param(pod(), [keeps_off(ZONE, "a")], None, None, id="skipped: zones only"),
        pytest.param(
            pod(labels=WEB),
            [keeps_off(ZONE, "b")],
            None,
            None,
            id="skipped: a zone that the node is not in",
        ),
        pytest.param(pod(), [FOLLOWS.assigned_to("a")], None, None, id="skipped: affinity only"),
    ],
)
def test_what_differs(a_pod: Pod, running: Sequence[Pod], off: Verdicts, on: Verdicts) -> None:
    nodes = table(*NODES, pods=running)

    assert verdicts(plugin(), a_pod, nodes) == off
    assert verdicts(plugin(fast=True), a_pod, nodes) == on


@pytest.mark.parametrize(
    ("a_pod", "running", "gone", "come", "on", "want"),
    [
        pytest.param(AVOIDS, [web("a")], web("a"), None, "a", None, id="removed: own node"),
        pytest.param(
            AVOIDS, [], None, web("twin"), "twin", ANTI_AFFINITY, id="added: what it avoids"
        ),
        pytest.param(
            AVOIDS, [web("a")], None, None, "twin", None, id="neither: the other node of the name"
        ),
        pytest.param(
            pod(labels=WEB),
            [keeps_off(HOSTNAME, "a")],
            None,
            keeps_off(HOSTNAME, "b"),
            "b",
            EXISTING_ANTI_AFFINITY,
            id="added: what avoids it",
        ),
        pytest.param(
            FOLLOWS,
            [web("unlabelled")],
            web("unlabelled"),
            None,
            "unlabelled",
            AFFINITY,
            id="removed from a node without the label: the first, but not there",
        ),
        pytest.param(FOLLOWS, [web("a")], web("a"), None, "a", None, id="removed: then the first"),
        pytest.param(
            FOLLOWS,
            [web("a"), web("b", "other")],
            web("a"),
            None,
            "a",
            AFFINITY,
            id="removed: another is left",
        ),
        pytest.param(
            FOLLOWS, [web("b")], None, web("a", "other"), "a", None, id="added: whom it follows"
        ),
    ],
)
def test_pods_that_come_and_go_in_thought(
    a_pod: Pod,
    running: Sequence[Pod],
    gone: Pod | None,
    come: Pod | None,
    on: str,
    want: Status | None,
) -> None:
    nodes, info, affinity = table(*NODES, pods=running), PodInfo(a_pod), plugin(fast=True)
    state = CycleState(nodes.exists.copy())
    assert affinity.pre_filter(state, info, nodes) is None
    part, twin, row = nodes.take([nodes.row_of[on]]), state.clone(), np.array([0])
    if gone is not None:
        part.remove_pods(row, PodBatch([PodInfo(gone)]))
        affinity.remove_pods(twin, info, row, PodBatch([PodInfo(gone)]), part)
    if come is not None:
        part.add_pods(row, PodBatch([PodInfo(come)]))
        affinity.add_pods(twin, info, row, PodBatch([PodInfo(come)]), part)

    assert affinity.filter(twin, info, part).status_of(0) == want


@pytest.mark.parametrize(
    ("is_on", "running", "want"),
    [
        pytest.param(False, [keeps_off(HOSTNAME, "a")], 0, id="off: whom it keeps off"),
        pytest.param(True, [], 0, id="on: no pod keeps others off"),
        pytest.param(True, [keeps_off(ZONE, "a")], 0, id="on: a pod keeps others off its zone"),
        pytest.param(True, [keeps_off(HOSTNAME, "a")], 4 * 2, id="on: off its node"),
    ],
)
async def test_how_often_filter_runs(is_on: bool, running: Sequence[Pod], want: int) -> None:
    """Of two pods that are alike, and that nobody keeps off."""
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": {HOSTNAME_FAST_PATH: is_on},
        }
    )
    export_everything(harness)
    harness.put(*NODES, *running, pod("p1"), pod("p2"))
    await harness.until_idle()

    assert harness.placements().keys() >= {"p1", "p2"}
    evaluations = counted(harness.registry, "scheduler_plugin_evaluation_total")
    of_filter = {plugin: n for (point, plugin, _), n in evaluations.items() if point == "Filter"}
    assert of_filter.get(InterPodAffinity.NAME, 0) == want
    assert of_filter["TaintToleration"] == 4 * 2
