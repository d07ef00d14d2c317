"""The view of a scheduler: whatever it offers changes nothing, and mypy refuses the rest."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from berth.kube.objects.pod_group import GroupKey
from berth.scheduler.binding import Bindings
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cache.view import CacheView
from berth.scheduler.core import view as views
from berth.scheduler.decisions import Decisions
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.queue.nominator import Nominator
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from tests.builders import node, pod
from tests.fingerprint import fingerprint
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, group_harness, members

PROTOCOLS = [
    (CacheView, Cache, {"add_pod", "assume_pod", "forget_pod", "remove_node", "without"}),
    (
        views.QueueView,
        SchedulingQueue,
        {"add", "pop", "done", "activate", "delete", "gate_may_open"},
    ),
    (
        views.NominatorView,
        Nominator,
        {"add_nominated_pod", "delete_nominated_pod_if_exists", "suspend"},
    ),
    (views.DecisionsView, Decisions, {"add", "add_cached_failure"}),
    (views.BindingsView, Bindings, {"add", "remove", "allow_waiting", "reject_waiting", "preempt"}),
    (views.PodGroupsView, PodGroups, {"see", "forget", "put", "take"}),
]


def offered(protocol: type) -> set[str]:
    """Return the members that *protocol* declares itself."""
    plumbing = {"__init__", "__subclasshook__"}
    return {
        name
        for name, member in vars(protocol).items()
        if (inspect.isfunction(member) or isinstance(member, property)) and name not in plumbing
    }


@pytest.mark.parametrize(("protocol", "part", "writing"), PROTOCOLS)
def test_what_writes_is_not_offered(protocol: type, part: type, writing: set[str]) -> None:
    assert writing <= set(dir(part)), "the table names methods that are gone"
    assert not writing & set(dir(protocol))


async def full_harness() -> Harness:
    """Return one with pods in all states that there are to look at."""
    harness = group_harness()
    harness.put(node("n1", cpu=2000), group(min_count=3), *members("a", "b", cpu="1"))
    harness.put(pod("old", cpu=500, node="n1"), pod("ghost", node="gone"))
    harness.put(pod("new", cpu=500), pod("big", cpu=9000), pod("nominated", cpu=9000))
    await harness.until_idle()
    nominated = harness.queue.sub_queues.get("default/nominated")
    assert nominated is not None
    harness.queue.nominator.add_nominated_pod(nominated.pod_info, node_name="n1")
    return harness


def looks(view: views.SchedulerView) -> Iterator[object]:
    """Call all that *view* offers."""
    uid, key = view.pods["default/nominated"].metadata.uid, "default/nominated"
    arguments: dict[str, tuple[Any, ...]] = {
        "is_assumed": (uid,),
        "pod": (uid,),
        "is_in_flight": (uid,),
        "nominated_node": (uid,),
        "nominated_pods_for_node": ("n1",),
        "of": (key,),
        "all_pods_count": (GroupKey("default", "g"),),
        "scheduled_pods_count": (GroupKey("default", "g"),),
    }
    parts: tuple[Any, ...] = (
        view.cache,
        view.queue,
        view.queue.nominator,
        view.decisions,
        view.bindings,
    )
    assert view.groups is not None
    for (protocol, _, _), part in zip(PROTOCOLS, (*parts, view.groups.pod_groups), strict=True):
        for name in offered(protocol):
            if name == "get":
                is_of_groups = protocol is views.PodGroupsView
                yield part.get(GroupKey("default", "g") if is_of_groups else uid)
            elif isinstance(vars(protocol)[name], property):
                yield getattr(part, name)
            else:
                answer = getattr(part, name)(*arguments.get(name, ()))
                yield list(answer) if isinstance(answer, Iterator) else answer
    info = next(iter(view.cache.pods()))
    (profile, *_) = view.profiles.values()
    yield view.begin_cycle(profile, info)
    yield view.leaving("n1")
    yield view.asks_extenders(info)
    yield view.at(0.0)
    yield view.new_trial(SchedulerMetrics(CollectorRegistry()))
    yield view.new_tree_trials(SchedulerMetrics(CollectorRegistry()))


async def test_looking_changes_nothing() -> None:
    harness = await full_harness()
    harness.cache.refresh_order()  # what is looked at is up to date
    before = fingerprint(harness.core)

    answers = list(looks(harness.view))

    assert len(answers) == sum(len(offered(protocol)) for protocol, _, _ in PROTOCOLS) + 6
    assert fingerprint(harness.core) == before


async def test_it_shows_the_scheduler_as_it_is_now() -> None:
    harness = Harness()
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()

    assert harness.view.pods["default/p"].spec.node_name == "n1"
    assert harness.view.cache.counts()["pods"] == 1
    assert [record.node for record in harness.view.decisions.of("default/p")] == ["n1"]

    with pytest.raises(dataclasses.FrozenInstanceError):
        harness.view.queue = harness.queue  # type: ignore[misc]
