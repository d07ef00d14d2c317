"""Dashboard and alerts: they use metrics that berth exports, by labels that these have."""

import asyncio
import json
import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.runtime.metrics import Family, Kind
from berth.scheduler.config.load import default_configuration
from berth.scheduler.metrics.process import declared
from berth.scheduler.profile.build import args_models
from berth.service.leaderelection.build import make_elector
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE
from tests.packaging.promql import Used, used

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "helm" / "berth"
OF_THE_TARGET = frozenset({"job", "instance", "namespace"})
"""Labels that Prometheus gives to whatever it scrapes."""
OF_PROMETHEUS = {"up": frozenset[str]()}
"""What Prometheus says of a target itself."""


@cache
def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CHART / "dashboards" / "berth.json").read_bytes())
    return loaded


@cache
def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "rules" / "alerts.yaml").read_bytes())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> Iterator[Any]:
    for rule in alerts():
        yield pytest.param(rule["expr"], id=rule["alert"])
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            assert found, variable
            as_promql = f"group by ({found[2]}) ({found[1]})"
            yield pytest.param(as_promql, id=f"variable {variable['name']}")


def sample_names(family: Family) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each name that *family* is read by, with its labels."""
    labels = frozenset(family.labels)
    if family.kind is not Kind.HISTOGRAM:
        yield family.name, labels
        return
    yield f"{family.name}_bucket", labels | {"le"}
    yield f"{family.name}_sum", labels
    yield f"{family.name}_count", labels


@pytest.fixture(scope="module")
def exported() -> Mapping[str, frozenset[str]]:
    """What a whole service exports, also what was not observed yet; with labels."""
    collected = {metric.name: metric for metric in asyncio.run(collect())}
    names: dict[str, frozenset[str]] = {}
    for family in declared():
        # prometheus-client leaves the ending of counters out
        if family.name.removesuffix("_total") in collected:
            names |= dict(sample_names(family))
    for metric in collected.values():
        for sample in metric.samples:
            names.setdefault(sample.name, frozenset(sample.labels))
    return names


async def collect() -> list[Metric]:
    """Return what is in the registry of a scheduler that elects; it is never run."""
    clock, rng, registry = FakeClock(), random.Random(1), CollectorRegistry()
    config = default_configuration(args_models(IN_TREE))
    client = client_of(Endpoint("http://localhost"), qps=0, burst=1, user_agent="test", clock=clock)
    elector = make_elector(client, config, registry=registry, clock=clock, rng=rng)
    SchedulerService(client, config, clock=clock, rng=rng, elector=elector, registry=registry)
    await client.close()
    return list(registry.collect())


@pytest.mark.parametrize("expression", list(expressions()))
def test_metrics_exist(expression: str, exported: Mapping[str, frozenset[str]]) -> None:
    found = used(expression)
    known = {**exported, **OF_PROMETHEUS}
    assert set(found.selectors) <= set(known)
    for metric, labels in found.selectors.items():
        assert labels <= known[metric] | OF_THE_TARGET, metric
    assert found.grouped_by <= labels_of(found, known) | OF_THE_TARGET


def labels_of(found: Used, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*(known[metric] for metric in found.selectors))


def test_a_family_that_is_not_exported_would_be_noticed(
    exported: Mapping[str, frozenset[str]],
) -> None:
    assert "scheduler_pending_pods" in exported
    assert "berth_oldest_pending_seconds" in exported
    assert "scheduler_podgroup_schedule_attempts_total" not in exported


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_alerts_say_what_to_do(rule: Mapping[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+m", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert notes["runbook_url"] == f"docs/operations.md#{rule['alert'].lower()}"
    # What it says is filled in from labels that its expression leaves.
    found = used(rule["expr"])
    told = set(re.findall(r"\$labels\.(\w+)", notes["description"]))
    own = {"queue", "name", "extender", "plugin", "extension_point"} & {*found.grouped_by, "queue"}
    assert told <= own | OF_THE_TARGET


def test_alerts_are_those_that_were_asked_for() -> None:
    assert [rule["alert"] for rule in alerts()] == [
        "BerthDown",
        "BerthReplicaDown",
        "BerthNoLeader",
        "BerthEventLoopStuck",
        "BerthNoProgress",
        "BerthOldestPending",
        "BerthLimiterBound",
        "BerthExtenderErrors",
        "BerthCacheDrift",
        "BerthPluginErrors",
        "BerthConfigReloadFailed",
    ]


def test_the_dashboard_asks_only_for_the_chosen_data_source_and_replicas() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in dashboard()["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["datasource"] == chosen, panel["title"]
        assert panel["description"], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == chosen, panel["title"]
            filters = target["expr"].count("{")
            assert target["expr"].count('job="$job", instance=~"$instance"') == filters > 0


def test_panels_have_a_place_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert max(x for x, _ in cells) < 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)
