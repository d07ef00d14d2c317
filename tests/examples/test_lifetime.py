"""Pods go where others run for as long, by what recordings and past pods tell."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from examples.plugins.lifetime._durations import Durations, of_recordings, template_of
from examples.plugins.lifetime.lifetime import Lifetime, LifetimeArgs
from hypothesis import given
from hypothesis import strategies as st

from berth.insight.recording import lines
from berth.kube.objects.meta import OwnerReference
from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock, rfc3339
from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import PodInfo
from berth.testing import configuration
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness

MINUTE, HOUR = 60.0, 3600.0


def owned(name: str, kind: str, owner: str) -> Pod:
    reference = OwnerReference("apps/v1", kind, owner, "uid", controller=True)
    return pod(name, ns="shop", owner=reference)


@pytest.mark.parametrize(
    ("a_pod", "template"),
    [
        pytest.param(
            owned("web-7f5f69d894-zm4xt", "ReplicaSet", "web-7f5f69d894"),
            "shop/ReplicaSet/web",
            id="of a Deployment, whatever its version",
        ),
        pytest.param(
            owned("backup-29412345-x2x", "Job", "backup-29412345"),
            "shop/Job/backup",
            id="of a CronJob, whenever it runs",
        ),
        pytest.param(
            owned("db-0", "StatefulSet", "db-primary"),
            "shop/StatefulSet/db-primary",
            id="a name that is no hash",
        ),
        pytest.param(pod("x-3", labels={"app": "batch"}), "default/batch", id="by its app"),
        pytest.param(pod("train-17"), "default/train", id="by its name"),
    ],
)
def test_the_template_of_a_pod(a_pod: Pod, template: str) -> None:
    assert template_of(a_pod) == template


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1e6))
def test_what_remains_is_the_mean_of_those_that_ran_longer(past: list[float], age: float) -> None:
    remaining = Durations({"t": past}).remaining("t", age)
    longer = [duration - age for duration in past if duration > age]
    assert remaining == pytest.approx(sum(longer) / len(longer) if longer else max(age, 1.0))


def test_nothing_is_known_of_other_templates() -> None:
    assert Durations({"t": [], "u": [1.0]}).remaining("t", 0.0) is None


def step(op: str, t: float, a_pod: Pod) -> bytes:
    kinds = {"add": lines.Added, "update": lines.Updated, "delete": lines.Deleted}
    return lines.encode(kinds[op](t, "pods", msgspec.Raw(msgspec.json.encode(a_pod))))


@pytest.mark.parametrize("is_compressed", [True, False])
def test_durations_are_learned_from_a_recording(tmp_path: Path, is_compressed: bool) -> None:
    waiting, running = pod("job-1"), pod("job-1", node="n")
    other = pod("job-2", node="n")
    done = pod("job-2", node="n", phase="Succeeded")
    steps = [
        step("add", 100.0, waiting),
        step("update", 110.0, running),
        step("add", 120.0, other),
        step("add", 125.0, pod("web-1", node="n")),
        b'{"op":"flush","t":126.0}',
        step("update", 130.0, done),
        step("delete", 150.0, running),
        step("delete", 190.0, done),
    ]
    data = b"\n".join(steps)
    file = tmp_path / "day"
    file.write_bytes(gzip.compress(data) if is_compressed else data)
    assert of_recordings([file]) == {
        "default/job": [10.0, 40.0],
        "default/web": [65.0],  # it still runs
    }


class Scene:
    """Three nodes: one runs for hours, one for minutes, one is empty."""

    def __init__(self, **args: Any) -> None:
        self.clock, self.cache = FakeClock(1_000_000_000.0), Cache()
        for name in ("hours", "minutes", "none"):
            self.cache.add_node(node(name))
        self.run("long-1", "hours")
        self.run("short-1", "minutes")
        durations = {"default/long": (8 * HOUR,), "default/short": (10 * MINUTE,)}
        plugin_args = LifetimeArgs(durations={**durations, **args.pop("durations", {})}, **args)
        self.plugin = Lifetime(plugin_args, Handle(self.cache.table, clock=self.clock))

    def run(self, name: str, on: str) -> None:
        made = pod(name, node=on)
        meta = msgspec.structs.replace(made.metadata, creation_timestamp=rfc3339(self.clock.now()))
        self.cache.add_pod(PodInfo(msgspec.structs.replace(made, metadata=meta)))

    def scores(self, name: str) -> dict[str, int]:
        nodes = self.cache.table
        scores = np.broadcast_to(
            self.plugin.score(CycleState(), PodInfo(pod(name)), nodes), nodes.size
        )
        return {at: int(scores[row]) for at, row in nodes.row_of.items()}


def test_a_node_is_better_the_less_longer_it_is_kept() -> None:
    scene = Scene()
    assert scene.scores("short-2") == {"hours": 100, "minutes": 100, "none": 60}
    assert scene.scores("long-2") == {"hours": 100, "minutes": 10, "none": 10}
    assert scene.scores("unknown-1") == {"hours": 0, "minutes": 0, "none": 0}


@pytest.mark.parametrize("repredicts", [True, False])
def test_a_pod_that_outlives_what_was_expected_is_expected_anew(repredicts: bool) -> None:
    mixed = {"default/short": (*[10 * MINUTE] * 9, 8 * HOUR)}
    scene = Scene(repredicts=repredicts, durations=mixed)
    assert scene.scores("long-2")["minutes"] == 10
    scene.clock.advance(HOUR)
    scene.run("long-3", "none")
    # It is one of those that run for hours, or it should have ended by now.
    assert scene.scores("long-2")["minutes"] == (40 if repredicts else 10)  # by an hour


async def test_it_decides_beside_the_default_plugins() -> None:
    durations = {"default/long": [8 * HOUR], "default/short": [10 * MINUTE]}
    args = {"Lifetime": {"durations": durations}}
    config = configuration(Lifetime, args=args)
    (profile,) = config["profiles"]
    profile["plugins"]["multiPoint"]["enabled"] = [{"name": "Lifetime", "weight": 100}]
    harness = Harness(config=config, registry={**IN_TREE, "Lifetime": Lifetime})
    harness.put(node("a"), node("b"))
    harness.put(pod("long-1", cpu="1", node="a"), pod("short-1", cpu="1", node="b"))
    harness.put(pod("long-2", cpu="1"))
    await harness.until_idle()
    assert harness.placements()["long-2"] == "a"
