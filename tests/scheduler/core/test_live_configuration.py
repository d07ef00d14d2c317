"""A configuration takes the place of another: nothing is lost, and what waits waits by the new."""

import gc
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import from_object
from berth.scheduler.config.types import API_VERSION, KIND, KubeSchedulerConfiguration
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import args_models
from berth.scheduler.queue.sub_queues import SubQueue
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness


def configuration(*names: str, **settings: Any) -> KubeSchedulerConfiguration:
    profiles = [{"schedulerName": name} for name in names or ("default-scheduler",)]
    obj = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles, **settings}
    return from_object(obj, source="test", args_models=args_models(IN_TREE))


def without(*plugins: str) -> KubeSchedulerConfiguration:
    disabled = {"multiPoint": {"disabled": [{"name": name} for name in plugins]}}
    profile = {"schedulerName": "default-scheduler", "plugins": disabled}
    return configuration(profiles=[profile])


class Scene(Harness):
    """A harness whose configuration can be replaced, as the service's can."""

    def __init__(self, *names: str) -> None:
        config = configuration(*names)
        profiles = [{"schedulerName": p.scheduler_name} for p in config.profiles]
        super().__init__(config={"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles})
        self.live = self.core.live

    def replace(self, config: KubeSchedulerConfiguration) -> None:
        self.core.reconfigure(config, IN_TREE)
        self.queue.settle()  # it takes a step for each template, also for those of other tests
        self.queue.check_invariants()

    def waiting(self) -> dict[str, str]:
        return {
            q.pod.metadata.name: part for part in SubQueue for q in self.queue.sub_queues.pods(part)
        }


async def test_pods_are_scheduled_by_the_new_profile() -> None:
    scene = Scene()
    scene.put(node("n1", unschedulable=True), pod("a"))
    await scene.until_idle()
    assert scene.waiting() == {"a": "unschedulable"}

    scene.replace(without("NodeUnschedulable"))
    scene.clock.advance(10)
    scene.queue.flush_backoff_completed()
    await scene.until_idle()

    assert scene.placements() == {"a": "n1"}
    assert scene.live.generation == 2


def test_pods_of_a_new_profile_are_picked_up_and_those_of_a_removed_one_dropped() -> None:
    scene = Scene("one", "two")
    scene.put(*(pod(f"of-{name}", scheduler=name) for name in ("one", "two", "three")))
    assert scene.waiting() == {"of-one": "active", "of-two": "active"}

    scene.replace(configuration("two", "three"))

    assert scene.waiting() == {"of-two": "active", "of-three": "active"}
    scene.put(pod("late", scheduler="one"), pod("later", scheduler="three"))
    assert scene.waiting().keys() == {"of-two", "of-three", "later"}


def test_a_gate_that_goes_lets_pods_through_and_one_that_comes_holds_them() -> None:
    scene = Scene()
    scene.put(pod("gated", gates=["wait"]), pod("free"))
    assert scene.waiting() == {"gated": "gated", "free": "active"}

    scene.replace(without("SchedulingGates"))
    assert scene.waiting() == {"gated": "active", "free": "active"}

    scene.replace(configuration())
    assert scene.waiting() == {"gated": "gated", "free": "active"}


async def test_a_pod_in_flight_is_tried_again_should_it_be_rejected() -> None:
    scene = Scene()
    scene.put(node("n1", unschedulable=True), pod("a"))
    queued = scene.queue.pop()
    assert queued is not None
    scene.replace(without("NodeUnschedulable"))
    queued.unschedulable_plugins = {"NodeUnschedulable"}
    scene.queue.add_unschedulable_if_not_present(queued)
    assert scene.waiting() == {"a": "backoff"}


async def test_rests_that_have_begun_are_served_out() -> None:
    scene = Scene()
    scene.put(node("n1"), pod("a"))
    scene.cluster.bind_error = ConnectionError("no")
    await scene.until_idle()
    assert scene.waiting() == {"a": "backoff"}

    scene.replace(configuration(podInitialBackoffSeconds=60, podMaxBackoffSeconds=60))
    assert scene.waiting() == {"a": "backoff"}
    scene.clock.advance(3)
    scene.queue.flush_backoff_completed()
    await scene.until_idle()

    (resting,) = scene.queue.sub_queues.pods(SubQueue.BACKOFF)
    assert scene.live.current.pod_max_backoff_seconds == 60
    assert resting.backoff_expiration == scene.clock.now() + 60


async def test_counters_of_a_profile_go_on() -> None:
    scene = Scene()
    scene.put(node("n1"), pod("a"))
    await scene.until_idle()
    before = scene.scheduler.profiles["default-scheduler"].evaluations["Filter"]["NodeName"]
    assert before == 1

    scene.replace(configuration())

    assert scene.scheduler.profiles["default-scheduler"].evaluations["Filter"]["NodeName"] == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            {"leaderElection": {"leaseDuration": "20s"}},
            'leaderElection.leaseDuration: Forbidden: it takes a restart to change it from "15s" to'
            ' "20s"',
            id="leader election",
        ),
        pytest.param(
            {"clientConnection": {"qps": 7}},
            "clientConnection.qps: Forbidden: it takes a restart to change it from 50 to 7",
            id="the client",
        ),
        pytest.param(
            {"delayCacheUntilActive": True},
            "delayCacheUntilActive: Forbidden: it takes a restart to change it from false to true",
            id="when caches are filled",
        ),
    ],
)
def test_what_only_a_restart_changes(change: dict[str, Any], problem: str) -> None:
    scene = Scene()
    old, profiles = scene.live.current, dict(scene.live.profiles)
    with pytest.raises(ConfigError) as caught:
        scene.replace(configuration(podMaxBackoffSeconds=99, **change))
    assert caught.value.problems == (problem,)
    assert (scene.live.current, dict(scene.live.profiles)) == (old, profiles)
    assert scene.live.generation == 1


def test_extenders_take_a_restart() -> None:
    extender = {"urlPrefix": "http://x", "filterVerb": "filter", "tlsConfig": {"keyData": "aGk="}}
    with pytest.raises(ConfigError) as caught:
        Scene().replace(configuration(extenders=[extender]))
    assert caught.value.problems == ("extenders: Forbidden: it takes a restart to change it",)


def test_parallelism_means_nothing_here_and_may_change() -> None:
    scene = Scene()
    scene.replace(configuration(parallelism=3))
    assert scene.live.current.parallelism == 3


def test_profiles_that_cannot_be_made_change_nothing() -> None:
    scene = Scene()
    profiles = dict(scene.live.profiles)
    bad = {"filter": {"enabled": [{"name": "PrioritySort"}]}}
    with pytest.raises(ConfigError, match="does not implement filter"):
        scene.replace(configuration(profiles=[{"plugins": bad}]))
    assert dict(scene.live.profiles) == profiles


CONFIGS = (
    configuration("default-scheduler", "other"),
    configuration("other"),
    configuration("default-scheduler", podMaxBackoffSeconds=3),
    without("SchedulingGates", "NodeUnschedulable"),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(["pod", "big", "gated", "theirs", "work", "later", *CONFIGS]), max_size=25
    )
)
async def test_reloads_in_a_load_lose_no_pod(steps: list[str | KubeSchedulerConfiguration]) -> None:
    scene = Scene("default-scheduler", "other")
    scene.put(node("n1", cpu=100_000), node("n2", cpu=100_000))
    for i, step in enumerate(steps):
        match step:
            case "pod":
                scene.put(pod(f"p{i}", cpu=1))
            case "big":
                scene.put(pod(f"p{i}", cpu=999_999))
            case "gated":
                scene.put(pod(f"p{i}", gates=["wait"]))
            case "theirs":
                scene.put(pod(f"p{i}", cpu=1, scheduler="other"))
            case "work":
                await scene.until_idle()
            case "later":
                scene.clock.advance(10)
                scene.queue.flush_backoff_completed()
            case KubeSchedulerConfiguration():
                scene.replace(step)
        ours = {
            p.metadata.name
            for p in scene.cluster.pods.values()
            if p.spec.scheduler_name in scene.live.profiles and not p.spec.node_name
        }
        assert scene.waiting().keys() == ours
    scene.replace(CONFIGS[0])
    scene.clock.advance(20)
    scene.queue.flush_backoff_completed()
    await scene.until_idle()
    unplaced = {p.metadata.name for p in scene.cluster.pods.values() if not p.spec.node_name}
    hopeless = {f"p{i}" for i, step in enumerate(steps) if step in ("big", "gated")}
    assert unplaced <= hopeless


def test_pods_that_stay_do_not_keep_the_plugins_that_go() -> None:
    scene = Scene()
    scene.put(pod("a"))
    waiting = PodInfo(scene.cluster.pods["default/a"])

    class Kept:
        """Stands for a plugin."""

    plugin = Kept()
    gone = weakref.ref(plugin)
    waiting.template.memo((plugin, "thing"), lambda: "compiled for it")
    waiting.template.memo("a name", lambda: "compiled once")
    del plugin
    assert gone() is not None

    scene.replace(configuration())
    gc.collect()

    assert gone() is None
    assert waiting.template.memo("a name", lambda: "compiled again") == "compiled once"
