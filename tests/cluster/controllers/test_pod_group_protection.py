"""Groups that are deleted: who holds them, and until when."""

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.controllers.pod_group_protection import (
    FINALIZER,
    PodGroupProtectionController,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.kinds.gated import gated_kinds
from berth.cluster.kinds.gates import GENERIC_WORKLOAD
from berth.cluster.object_views import Meta
from berth.cluster.pods.controllers import PodSpecView, PodStatusView, PodView, SchedulingGroupView
from tests.cluster.objects import BIRTH, pod_view

GROUPS = gated_kinds((GENERIC_WORKLOAD,))[0]
KEY = "default/g"


def member(of: str = "g", phase: str = "Running") -> PodView:
    return msgspec.structs.replace(
        pod_view("p"),
        spec=PodSpecView(scheduling_group=SchedulingGroupView(of)),
        status=PodStatusView(phase=phase),
    )


def group(*, deleted: bool) -> ResourceView:
    when = BIRTH if deleted else None
    finalizers = ["mine", FINALIZER]
    meta = Meta("g", "u", "default", "7", finalizers=finalizers, deletion_timestamp=when)
    return ResourceView(meta)


@pytest.mark.parametrize(
    ("pod", "is_held"),
    [
        pytest.param(member(), True, id="a pod that runs"),
        pytest.param(member(phase="Pending"), True, id="a pod that waits"),
        pytest.param(member(phase="Succeeded"), False, id="a pod that is finished"),
        pytest.param(member("other"), False, id="a pod of another group"),
        pytest.param(pod_view("p"), False, id="a pod of no group"),
    ],
)
def test_a_group_with_pods_stays(pod: PodView, is_held: bool) -> None:
    groups: Table[ResourceView] = Table()
    pods: Table[PodView] = Table()
    controller = PodGroupProtectionController(GROUPS, groups, pods)
    enqueued: list[str] = []
    controller.subscribe(enqueued.append)
    pods.on_add(pod)
    groups.on_add(group(deleted=False))
    assert not controller.plan(KEY).actions

    groups.on_update(group(deleted=False), group(deleted=True))
    assert enqueued == [KEY]
    actions = controller.plan(KEY).actions
    assert bool(actions) is not is_held
    if is_held:
        enqueued.clear()
        pods.on_delete(pod)
        assert enqueued == [KEY]
        actions = controller.plan(KEY).actions
    [patch] = actions
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["finalizers"] == ["mine"]
