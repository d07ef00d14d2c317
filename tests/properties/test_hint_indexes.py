"""Whatever happens, indexes of hints move the same pods as asking every hint about every pod."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.meta import LabelSelector, ObjectMeta
from berth.kube.objects.pod import GCEPersistentDisk, Pod, SchedulingGroup, Volume
from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from berth.scheduler.queue.hints import Registration
from tests.builders import (
    affinities,
    expression,
    host_port,
    namespace,
    node,
    node_affinity,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    requirement,
    selector,
    spread,
    term,
)
from tests.scheduler.pod_group.building import group_harness
from tests.scheduler.queue.world import World
from tests.volume_builders import claim

NAMESPACES = ("a", "b")

keys, values = st.sampled_from("kl"), st.sampled_from("xy")
labels = st.dictionaries(keys, values, min_size=1)
of_namespace = st.sampled_from(["a", "a", "b"])
expressions = st.one_of(
    st.builds(
        lambda key, operator, some: expression(key, operator, *some),
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=2),
    ),
    st.builds(expression, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors: st.SearchStrategy[LabelSelector | None] = st.one_of(
    st.dictionaries(keys, values, min_size=1, max_size=1).map(selector),
    st.lists(expressions, max_size=2).map(lambda found: selector(expressions=found)),
    st.none(),
)
teams: st.SearchStrategy[LabelSelector | None] = st.sampled_from(
    [None, None, selector(), selector({"team": "a"}), selector({"team": "nobody"})]
)
namespaces = st.sampled_from([(), (), ("a",), ("b",), ("a", "b")])
terms = st.lists(
    st.builds(pod_term, selectors, namespaces=namespaces, namespace_selector=teams),
    min_size=1,
    max_size=2,
)
affinity = st.one_of(
    terms.map(lambda near: pod_affinity(required=near)),
    terms.map(lambda far: pod_anti_affinity(required=far)),
    st.builds(
        lambda near, far: affinities(pod_affinity(required=near), pod_anti_affinity(required=far)),
        terms,
        terms,
    ),
)
spreads = st.lists(
    st.builds(
        spread,
        selector=selectors,
        soft=st.sampled_from([False, False, True]),
        match_label_keys=st.lists(keys, max_size=1),
    ),
    min_size=1,
    max_size=2,
)
ports = st.lists(
    st.builds(
        host_port,
        st.sampled_from([80, 81]),
        ip=st.sampled_from(["", "10.0.0.1", "10.0.0.2"]),
        protocol=st.sampled_from(["TCP", "UDP"]),
    ),
    min_size=1,
    max_size=2,
)
disks = st.sampled_from(["d1", "d2"]).map(
    lambda name: Volume(name, gce_persistent_disk=GCEPersistentDisk(name))
)
own_claims = st.lists(st.sampled_from(["c1", "c2"]), max_size=1)


@dataclass(frozen=True)
class Happening:
    event: ClusterEvent
    old: Any
    new: Any


def pods(facts: Mapping[str, st.SearchStrategy[Any]], **more: Any) -> st.SearchStrategy[Pod]:
    return st.builds(_pod, ns=of_namespace, labels=labels, **facts, **more)


def _pod(*, group: str = "", **fields: Any) -> Pod:
    made = pod(**fields)
    if not group:
        return made
    spec = msgspec.structs.replace(made.spec, scheduling_group=SchedulingGroup(group))
    return msgspec.structs.replace(made, spec=spec)


def pod_happenings(facts: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Happening]:
    """Return what may happen to other pods, mostly to those that are on a node."""
    changes = (ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_TOLERATION)
    updates = [ClusterEvent(EventResource.ASSIGNED_POD, action) for action in changes]
    others = pods(
        facts,
        name=st.just("other"),
        node=st.sampled_from(["n1", "n1", "n1", ""]),
        nominated=st.sampled_from(["", "n1"]),
    )
    return st.one_of(
        st.builds(Happening, st.just(ASSIGNED_POD_ADD), st.none(), others),
        st.builds(Happening, st.just(ASSIGNED_POD_DELETE), others, st.none()),
        st.builds(Happening, st.sampled_from(updates), others, others),
    )


def claim_happenings() -> st.SearchStrategy[Happening]:
    claims = st.builds(claim, st.sampled_from(["c1", "c2"]), ns=of_namespace)
    added, updated = (
        ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, action)
        for action in (ActionType.ADD, ActionType.UPDATE)
    )
    return st.one_of(
        st.builds(Happening, st.just(added), st.none(), claims),
        st.builds(Happening, st.just(updated), claims, claims),
    )


def group_happenings() -> st.SearchStrategy[Happening]:
    added = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD)
    groups = st.builds(
        lambda name, ns: PodGroup(ObjectMeta(name=name, namespace=ns)), group_names, of_namespace
    )
    return st.builds(Happening, st.just(added), st.none(), groups)


def node_happenings(
    action: ActionType, facts: Mapping[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[Happening]:
    """Return nodes that come, or change as *action* says."""
    nodes = st.builds(node, st.sampled_from(["n1", "n2"]), **facts)
    updated = ClusterEvent(EventResource.NODE, action)
    return st.one_of(
        st.builds(Happening, st.just(NODE_ADD), st.none(), nodes),
        st.builds(Happening, st.just(updated), nodes, nodes),
    )


node_terms = st.builds(
    lambda wanted, names: (
        term(*wanted, fields=[requirement("metadata.name", *names)]) if names else term(*wanted)
    ),
    st.lists(
        st.one_of(
            st.builds(
                lambda key, operator, some: requirement(key, operator, *some),
                keys,
                st.sampled_from(["In", "In", "NotIn"]),
                st.lists(values, max_size=2),
            ),
            st.builds(requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
        ),
        max_size=2,
    ),
    st.sampled_from([(), (), ("In", "n1"), ("NotIn", "n1"), ("In",)]),
)
WITH_NODE_AFFINITY: Mapping[str, st.SearchStrategy[Any]] = {
    "node_selector": st.none() | st.dictionaries(keys, values, max_size=2),
    "affinity": st.none()
    | st.lists(node_terms, max_size=2).map(lambda any_of: node_affinity(required=any_of)),
}
sizes = st.sampled_from(["0", "1m", "500m", "512m", "1", "1023m", "1024m", "3", "4", "64"])
amounts = st.sampled_from(["0", "1", "1023", "1Ki", "1025", "7Gi", "8Gi", "9Gi"])
WITH_REQUESTS: Mapping[str, st.SearchStrategy[Any]] = {
    "cpu": st.none() | sizes,
    "memory": st.none() | amounts,
    "requests": st.dictionaries(st.just("example.com/gpu"), st.sampled_from(["1", "2"])),
}
WITH_ALLOCATABLE: Mapping[str, st.SearchStrategy[Any]] = {
    "cpu": sizes,
    "memory": amounts,
    "allocatable": st.dictionaries(st.just("example.com/gpu"), st.sampled_from(["1", "2"])),
}

group_names = st.sampled_from(["g", "h"])
Facts = Mapping[str, st.SearchStrategy[Any]]
WITH_CLAIMS: Facts = {"claims": own_claims}
IN_GROUPS: Facts = {"group": st.just("") | group_names}
WITH_VOLUMES: Facts = {"claims": own_claims, "volumes": st.lists(disks, max_size=1)}

CASES: Mapping[str, tuple[Facts, st.SearchStrategy[Happening]]] = {
    "InterPodAffinity": ({"affinity": affinity}, pod_happenings({"affinity": affinity})),
    "PodTopologySpread": ({"spread": spreads}, pod_happenings({})),
    "NodePorts": ({"ports": ports}, pod_happenings({"ports": ports})),
    "VolumeRestrictions": (WITH_VOLUMES, pod_happenings(WITH_VOLUMES) | claim_happenings()),
    "NodeVolumeLimits": (WITH_CLAIMS, claim_happenings()),
    "VolumeBinding": (WITH_CLAIMS, claim_happenings()),
    "VolumeZone": (WITH_CLAIMS, claim_happenings()),
    "NodeAffinity": (
        WITH_NODE_AFFINITY,
        node_happenings(
            ActionType.UPDATE_NODE_LABEL, {"labels": st.dictionaries(keys, values, max_size=2)}
        ),
    ),
    "NodeResourcesFit": (
        WITH_REQUESTS,
        node_happenings(ActionType.UPDATE_NODE_ALLOCATABLE, WITH_ALLOCATABLE),
    ),
    "GangScheduling": (IN_GROUPS, pod_happenings(IN_GROUPS) | group_happenings()),
}


def registered() -> list[Registration]:
    """Return what all plugins with indexes register, where namespaces have labels."""
    harness = group_harness()
    harness.put(*(namespace(name, labels={"team": name}) for name in NAMESPACES))
    (profile,) = harness.scheduler.profiles.values()
    return profile.queueing_hints()


WITH_INDEXES = registered()
WITHOUT = [(plugin, ClusterEventWithHint(each.event, each.hint)) for plugin, each in WITH_INDEXES]


def test_every_plugin_with_indexes_is_compared() -> None:
    with_indexes = {plugin for plugin, each in WITH_INDEXES if each.indexes}
    elsewhere = {"DynamicResources"}  # whose hint looks claims up: test_waiting_pods
    assert with_indexes == CASES.keys() | elsewhere


def named(pod: Pod, name: str) -> Pod:
    """Return a pod that differs from *pod* in its name only."""
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=name)
    return msgspec.structs.replace(pod, metadata=metadata)


def labelled(pod: Pod, labels: Mapping[str, str]) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, labels=dict(labels))
    return msgspec.structs.replace(pod, metadata=metadata)


def waiting(
    hints: Sequence[Registration], pods: Sequence[Pod], plugin: str, *, by_signature: bool
) -> World:
    made = World(*hints, by_signature=by_signature)
    for each in pods:
        made.reject(each, plugin)
    return made


@pytest.mark.parametrize("plugin", CASES)
@settings(max_examples=40)
@given(st.data())
def test_the_same_pods_move(plugin: str, data: st.DataObject) -> None:
    facts, of_others = CASES[plugin]
    kinds = data.draw(st.lists(pods(facts), min_size=1, max_size=3), label="kinds")
    crowd = [named(data.draw(st.sampled_from(kinds)), f"w{n}") for n in range(4)]
    by_signature = data.draw(st.booleans(), label="by signature")
    worlds = [
        waiting(hints, crowd, plugin, by_signature=by_signature)
        for hints in (WITH_INDEXES, WITHOUT)
    ]
    if data.draw(st.booleans(), label="one is labelled anew"):
        changed = labelled(crowd[0], data.draw(labels))
        for world in worlds:
            world.update(changed)
    for each in data.draw(st.lists(of_others, min_size=1, max_size=3), label="happenings"):
        for world in worlds:
            world.queue.move_all_to_active_or_backoff_queue(each.event, old=each.old, new=each.new)
            world.queue.check_invariants()
        indexed, asked = worlds
        assert indexed.places() == asked.places()
        assert indexed.queue.incoming_counts() == asked.queue.incoming_counts()
    assert indexed.pop_names() == asked.pop_names()
