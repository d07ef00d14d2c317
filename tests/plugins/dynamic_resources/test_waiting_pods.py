"""About a pod that the index of claims does not find, the hint answers Skip."""

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import EventResource, QueueingHint
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.queue.rejected_pods import RejectedPods
from tests.builders import pod
from tests.device_builders import allocation, claim, with_claims, with_template_claim
from tests.plugins.dynamic_resources.group_world import owned_by_group, world
from tests.scheduler.pod_group.building import member

NAMES = st.sampled_from(["c", "d"])
POD = pod("p", uid="me")
MEMBER = member("p", uid="me")
PODS: st.SearchStrategy[Pod] = st.one_of(
    st.lists(NAMES, unique=True).map(lambda names: with_claims(POD, *names)),
    st.builds(with_template_claim, st.sampled_from([POD, MEMBER]), st.just("t"), made=NAMES),
    st.just(with_template_claim(POD, "t", known=False)),
)
CLAIMS: st.SearchStrategy[ResourceClaim] = st.one_of(
    st.builds(
        claim,
        NAMES,
        owner=st.sampled_from(["", "me", "other"]),
        allocated=st.sampled_from([None, allocation("a")]),
    ),
    st.builds(owned_by_group, NAMES, of=st.sampled_from(["g", "h"])),
)
HARNESS = world()
(PROFILE,) = HARNESS.scheduler.profiles.values()
(REGISTERED,) = (
    each
    for plugin, each in PROFILE.queueing_hints()
    if plugin == "DynamicResources" and each.event.resource is EventResource.RESOURCE_CLAIM
)


@settings(max_examples=120)
@given(PODS, CLAIMS, CLAIMS, st.data())
def test_pods_that_are_not_found_stay(
    waiting: Pod, other: ResourceClaim, new: ResourceClaim, data: st.DataObject
) -> None:
    for known in [*HARNESS.listers.resource_claims]:
        HARNESS.delete(known)
    HARNESS.put(other, new)
    same = CLAIMS.filter(lambda old: old.metadata.uid == new.metadata.uid)
    old = data.draw(st.none() | same)
    rejected: RejectedPods[Any] = RejectedPods(("", "DynamicResources"), REGISTERED.indexes)
    rejected.add("waiting", PodInfo(waiting))
    assert REGISTERED.hint is not None
    answer = REGISTERED.hint(waiting, old, new)
    found = bool(list(rejected.found_by(REGISTERED.indexes, old, new)))
    event(f"{answer.value}, {'found' if found else 'not found'}")
    assert found or answer is QueueingHint.SKIP
