"""Plugins that are asked at a point without what they keep from an earlier one (spec §1.1)."""

from typing import Any

import pytest

from berth.kube.objects.pod import GCEPersistentDisk, Volume
from tests.builders import ZONE, claim_volume, node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explain
from tests.volume_builders import claim, volume

FILTERS = {
    "NodePorts": 'reading "PreFilterNodePorts" from cycleState: not found',
    "NodeResourcesFit": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    "VolumeRestrictions": 'cannot read "PreFilterVolumeRestrictions" from cycleState',
    "VolumeBinding": "not found",
    "PodTopologySpread": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
    "DynamicResources": "not found",
    "NodeDeclaredFeatures": (
        'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    ),
}
SCORES = {
    "TaintToleration": 'failed to read "PreScoreTaintToleration" from cycleState: not found',
    "PodTopologySpread": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
}


def without(plugin: str, *points: str) -> Harness:
    """Make a scheduler with *plugin* disabled at *points*, and two nodes."""
    disabled = {point: {"disabled": [{"name": plugin}]} for point in points}
    profile: dict[str, Any] = {"plugins": disabled}
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
        }
    )
    harness.put(node("n1"), node("n2", cpu=8, memory="16Gi"))
    return harness


def told(harness: Harness) -> tuple[str, str]:
    """Return reason and message of the condition of the pod."""
    [condition] = harness.cluster.conditions.values()
    return condition.reason, condition.message


@pytest.mark.parametrize(("plugin", "text"), FILTERS.items())
async def test_filter_without_pre_filter_fails_the_attempt(plugin: str, text: str) -> None:
    harness = without(plugin, "preFilter")
    for _ in range(3):
        harness.put(pod("p", cpu="1"))
        await harness.pass_time(2)
    assert harness.placements() == {}
    assert told(harness) == ("SchedulerError", f'running "{plugin}" filter plugin: {text}')


@pytest.mark.parametrize("plugin", FILTERS)
async def test_explain_says_the_same(plugin: str, caplog: pytest.LogCaptureFixture) -> None:
    harness = without(plugin, "preFilter")
    harness.put(pod("p", cpu="1"))
    await harness.until_idle()
    caplog.clear()
    found = explain(harness, "default/p").evaluation
    assert found is not None
    assert FILTERS[plugin] in str(found)
    assert not caplog.records


@pytest.mark.parametrize(("plugin", "text"), SCORES.items())
async def test_score_without_pre_score_fails_the_attempt(plugin: str, text: str) -> None:
    harness = without(plugin, "preScore")
    harness.put(pod("p", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {}
    assert told(harness) == (
        "SchedulerError",
        f'running Score plugins: plugin "{plugin}" failed with: {text}',
    )


@pytest.mark.parametrize("plugin", ["NodeAffinity", "VolumeZone", "NodeVolumeLimits"])
async def test_these_filters_need_nothing_of_pre_filter(plugin: str) -> None:
    harness = without(plugin, "preFilter")
    harness.put(pod("p", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {"p": "n2"}


@pytest.mark.parametrize(
    "plugin", ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"]
)
@pytest.mark.parametrize("cpu", [None, "1"])
async def test_these_scores_need_nothing_of_pre_score(plugin: str, cpu: str | None) -> None:
    harness = without(plugin, "preScore")
    harness.put(pod("p", cpu=cpu))
    await harness.until_idle()
    assert harness.placements() == {"p": "n2"}


@pytest.mark.parametrize("plugin", ["VolumeBinding", "DynamicResources"])
async def test_reserve_without_pre_filter_fails_the_attempt(plugin: str) -> None:
    harness = without(plugin, "preFilter", "filter")
    harness.put(pod("p", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {}
    assert told(harness) == ("SchedulerError", f'running Reserve plugin "{plugin}": not found')


async def test_volume_zone_looks_claims_up_in_filter() -> None:
    harness = without("VolumeZone", "preFilter")
    harness.put(node("n1", zone="a"), node("n2", zone="b"))
    harness.put(
        volume("pv", labels={ZONE: "a"}, claim=claim("c", bound_to="pv", volume="pv")),
        claim("c", bound_to="pv", volume="pv"),
        pod("p", cpu="1", volumes=[claim_volume("c")]),
    )
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}


async def test_a_disk_conflict_everywhere_is_no_error() -> None:
    harness = without("VolumeRestrictions", "preFilter")
    disk = Volume(name="d", gce_persistent_disk=GCEPersistentDisk("disk"))
    harness.put(*(pod(f"p{i}", node=f"n{i}", volumes=[disk]) for i in (1, 2)))
    harness.put(pod("p", cpu="1", volumes=[disk]))
    await harness.until_idle()
    assert told(harness)[0] == "Unschedulable"
