"""Who decides: presets, weights and profiles, alone and compared."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.whatif.manifests import QuestionError
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import from_object
from berth.scheduler.core.simulated_cluster import (
    SimulatedCluster,
    SimulationOptions,
    run_simulation,
)
from berth.scheduler.profile.build import args_models
from berth.scheduler.schedule_pod import smallest_name
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.insight.whatif.asking import ask, deployment, snapshot

PROFILE = "default-scheduler"
FIT, BALANCED = "NodeResourcesFit", "NodeResourcesBalancedAllocation"
SPREAD = (node("busy", cpu="4", memory="8Gi"), node("idle", cpu="4", memory="8Gi"))
RUNNING = pod("running", cpu="1", memory="2Gi", node="busy")


def configuration(*profiles: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
    }


TWO_PROFILES = configuration(
    {"schedulerName": PROFILE},
    {
        "schedulerName": "packing",
        "pluginConfig": [
            {
                "name": FIT,
                "args": {
                    "scoringStrategy": {
                        "type": "MostAllocated",
                        "resources": [{"name": "cpu", "weight": 1}],
                    }
                },
            }
        ],
        "plugins": {"score": {"enabled": [{"name": FIT, "weight": 50}]}},
    },
)


def one(name: str = "web", **more: Any) -> dict[str, Any]:
    return {"templates": [{"manifest": deployment(name, cpu="500m"), **more}]}


def test_a_preset_decides() -> None:
    found = ask(snapshot(*SPREAD, RUNNING), preset="binpack", **one())
    assert found.placements == {"shop/web-0": "busy"}


@pytest.mark.parametrize(
    ("other", "node", "moved"),
    [
        pytest.param({"comparePreset": "binpack"}, "busy", 1, id="a preset"),
        pytest.param({"comparePreset": "default"}, "idle", 0, id="the same as a preset"),
        pytest.param({"compareProfile": "packing"}, "busy", 1, id="another profile"),
        pytest.param(
            {"compareProfile": "packing", "compareWeights": {"packing": {FIT: 0, BALANCED: 0}}},
            "busy",
            1,
            id="another profile with weights: all are alike, and the first by name is taken",
        ),
        pytest.param({"compareWeights": {PROFILE: {FIT: 1}}}, "idle", 0, id="the same weight"),
        pytest.param(
            {"compareWeights": {PROFILE: {FIT: 0, BALANCED: 0}}}, "busy", 1, id="weights of 0"
        ),
    ],
)
def test_what_is_compared(other: dict[str, Any], node: str, moved: int) -> None:
    found = ask(snapshot(*SPREAD, RUNNING, config=TWO_PROFILES), **one(), **other)
    assert found.compared is not None
    assert found.placements == {"shop/web-0": "idle"}
    assert (found.compared.placements, found.moved) == ({"shop/web-0": node}, moved)


def test_a_profile_places_what_the_question_is_about_and_nobody_else() -> None:
    taken = snapshot(*SPREAD, RUNNING, pod("waiting", cpu="1m"), config=TWO_PROFILES)
    found = ask(taken, profile="packing", removeNodes={"names": ["idle"]}, **one())
    assert found.placements == {"shop/web-0": "busy", "default/waiting": "busy"}
    assert ask(taken, profile="packing", **one()).placements == {
        "shop/web-0": "busy",
        "default/waiting": "idle",
    }


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        pytest.param(
            {"weights": {PROFILE: {"Foo": 1}}},
            'weights: default-scheduler: Invalid value: "Foo": does not score',
            id="a plugin",
        ),
        pytest.param(
            {"compareWeights": {"no": {FIT: 1}}},
            'compareWeights: profile: Not found: "no"',
            id="a profile of compared weights",
        ),
        pytest.param(
            {"profile": "no"}, "profile: 'no': must be one of default-scheduler", id="a profile"
        ),
        pytest.param(
            {"compareProfile": "packing", "comparePreset": "binpack"},
            "compareProfile: 'packing': must be one of default-scheduler",
            id="a profile that a preset does not have",
        ),
        pytest.param(
            {"compareConfig": configuration({"schedulerName": 7})},
            "compareConfig: profiles[0].schedulerName",
            id="a configuration",
        ),
    ],
)
def test_what_cannot_decide_is_refused(question: dict[str, Any], problem: str) -> None:
    with pytest.raises((QuestionError, ConfigError)) as caught:
        ask(snapshot(*SPREAD, config=TWO_PROFILES if "packing" in problem else None), **question)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("prefix", ["", "compare"])
def test_preset_and_configuration_exclude_each_other(prefix: str) -> None:
    config, preset = (
        f"{prefix}Config" if prefix else "config",
        "comparePreset" if prefix else "preset",
    )
    with pytest.raises(ValueError, match=f"{preset} and {config} exclude each other"):
        ask(snapshot(), **{config: {}, preset: "binpack"})


def scheduled_afresh(
    nodes: list[Any], running: list[Any], cpus: list[str], weights: dict[str, int]
) -> dict[str, str]:
    """Return where a scheduler that is configured with *weights* puts pods, one after the other."""
    score = {
        "enabled": [{"name": name, "weight": weight} for name, weight in weights.items() if weight],
        "disabled": [{"name": name} for name in weights],
    }
    profile = {"schedulerName": PROFILE, "plugins": {"score": score}}
    config = from_object(configuration(profile), source="t", args_models=args_models(IN_TREE))
    options = SimulationOptions(preempts=False, select=smallest_name)
    cluster = SimulatedCluster(config, IN_TREE, options)
    for each in (*nodes, *running):
        cluster.put(each)
    for i, cpu in enumerate(cpus):
        cluster.put(pod(f"p{i}", cpu=cpu))
    run_simulation(cluster.run_until_quiet())
    return {bound.pod.key: bound.pod.node_name for bound in cluster.bound}


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.sampled_from(["2", "4", "8"]), min_size=2, max_size=4),
    cpus=st.lists(st.sampled_from(["500m", "1", "2"]), min_size=1, max_size=6),
    weights=st.fixed_dictionaries({FIT: st.integers(0, 20), BALANCED: st.integers(0, 20)}),
)
def test_weights_are_those_of_a_scheduler_that_is_configured_with_them(
    sizes: list[str], cpus: list[str], weights: dict[str, int]
) -> None:
    nodes = [node(f"n{i}", cpu=size, memory="8Gi") for i, size in enumerate(sizes)]
    running = [pod("running", cpu="1", memory="4Gi", node="n0")]
    waiting = [pod(f"p{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
    found = ask(snapshot(*nodes, *running, *waiting), compareWeights={PROFILE: weights})
    assert found.compared is not None
    assert found.compared.placements == scheduled_afresh(nodes, running, cpus, weights)
    as_they_were = {FIT: 1, BALANCED: 1}
    assert found.placements == scheduled_afresh(nodes, running, cpus, as_they_were)


def test_a_question_with_all_of_it_is_json() -> None:
    asked = {
        "templates": [{"like": "running", "replicas": 2}],
        "preset": "spread",
        "weights": {PROFILE: {FIT: 3}},
        "comparePreset": "binpack",
        "compareProfile": PROFILE,
    }
    found = ask(snapshot(*SPREAD, RUNNING), **json.loads(json.dumps(asked)))
    assert found.placements.keys() == {"default/running-0", "default/running-1"}


def test_releases_are_compared() -> None:
    """An image volume raises the bound of ImageLocality since 1.37 (N3.3): the other node wins."""
    web = deployment(cpu="100m", volumes=[{"name": "data", "image": {"reference": "data:1"}}])
    image = {"data:1": 1000 * 1024**2}
    nodes = node("busy", cpu="10", memory="8Gi", images=image), node("idle", cpu="10", memory="8Gi")
    found = ask(
        snapshot(*nodes, pod("running", cpu="6", node="busy")),
        templates=[{"manifest": web}],
        emulatedVersion="1.36",
        compareEmulatedVersion="1.37",
    )
    assert found.compared is not None
    assert found.placements == {"shop/web-0": "busy"}
    assert (found.compared.placements, found.moved) == ({"shop/web-0": "idle"}, 1)
