"""Presets do what their names say, and the chart and the pages have the same."""

from typing import Any

import pytest
import yaml

from berth.scheduler.config.presets import PRESETS, preset
from tests.builders import node, pod, service
from tests.docs.pages import ROOT, blocks
from tests.harness import Harness

CHART = ROOT / "helm" / "berth" / "presets"
ZONE = "topology.kubernetes.io/zone"


def parsed(name: str) -> Any:
    return yaml.safe_load(preset(name))


def own(profile: Any) -> Any:
    """Return what a profile says beside its name."""
    return {key: value for key, value in profile.items() if key != "schedulerName"}


def test_the_chart_has_the_same_files() -> None:
    assert sorted(path.name for path in CHART.iterdir()) == sorted(f"{p}.yaml" for p in PRESETS)
    for name in PRESETS:
        assert (CHART / f"{name}.yaml").read_bytes() == preset(name)


def profiles_of_pages() -> list[Any]:
    documents = [
        document
        for block in blocks("yaml")
        if "KubeSchedulerConfiguration" in block.text
        for document in yaml.safe_load_all(block.text)
    ]
    return [
        pytest.param(profile, id=profile["schedulerName"])
        for document in documents
        if isinstance(document, dict) and document.get("kind") == "KubeSchedulerConfiguration"
        for profile in document.get("profiles", ())
        if profile.get("schedulerName") in PRESETS or "MostAllocated" in str(profile)
    ]


@pytest.mark.parametrize("profile", profiles_of_pages())
def test_pages_show_the_presets(profile: Any) -> None:
    name = profile["schedulerName"] if profile["schedulerName"] in PRESETS else "binpack"
    assert own(profile) == own(parsed(name)["profiles"][0])


@pytest.mark.parametrize(("name", "used"), [("binpack", 3), ("default", 10), ("spread", 10)])
async def test_how_many_nodes_24_replicas_of_half_a_core_use(name: str, used: int) -> None:
    harness = Harness(config=parsed(name))
    harness.put(*(node(f"n{i}", cpu=4, memory="8Gi") for i in range(10)))
    harness.cluster.listers.services.on_add(service("web", selects={"app": "web"}))
    harness.put(*(pod(f"web-{i}", cpu="500m", labels={"app": "web"}) for i in range(24)))
    await harness.until_idle()
    placements = harness.placements()
    assert len(placements) == 24
    assert len(set(placements.values())) == used


async def test_spread_is_over_zones_and_nodes() -> None:
    harness = Harness(config=parsed("spread"))
    zones = {f"{zone}{i}": zone for zone in "abc" for i in range(2)}
    harness.put(*(node(name, cpu=8, labels={ZONE: zone}) for name, zone in zones.items()))
    harness.cluster.listers.services.on_add(service("web", selects={"app": "web"}))
    harness.put(*(pod(f"web-{i}", cpu="500m", labels={"app": "web"}) for i in range(6)))
    await harness.until_idle()
    assert sorted(harness.placements().values()) == sorted(zones)
