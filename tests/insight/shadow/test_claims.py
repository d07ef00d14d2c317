"""Pods whose claims the other scheduler changes before it binds them.

After such a change the pod fits one node only. What shows that it was decided before is that it
could have gone to others.
"""

import pytest

from berth.insight.explain.comparison import Agreement
from berth.insight.shadow import shadow
from berth.insight.shadow.comparisons import Skipped
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import BOUND_BY_CONTROLLER
from berth.scheduler.framework.listers import ApiObject
from tests.builders import node, pod
from tests.device_builders import allocation, device, device_class, resource_slice, with_claims
from tests.device_builders import claim as device_claim
from tests.insight.shadow.watching import Told
from tests.volume_builders import claim, storage_class, volume

NODES = [node("n1"), node("n2"), node("n3", cpu="1")]
DISKS = [volume("v1", hosts=["n1"]), volume("v2", hosts=["n2"]), volume("v3", hosts=["n3"])]
MADE = storage_class("made", provisioner="csi.example.com")
GPU = device_class("gpu")
SLICES = [resource_slice(name, device(f"gpu-{name}"), node=name) for name in ("n1", "n2")]

Changes = list[tuple[ApiObject, ApiObject]]


@pytest.mark.parametrize(
    ("objects", "asked", "changes"),
    [
        pytest.param(
            [storage_class(), claim("data"), *DISKS],
            pod(claims=["data"]),
            [
                (
                    DISKS[1],
                    volume(
                        "v2",
                        hosts=["n2"],
                        claim=claim("data"),
                        annotations={BOUND_BY_CONTROLLER: "yes"},
                        version="2",
                    ),
                ),
                (claim("data"), claim("data", bound_to="v2", version="2")),
            ],
            id="a volume is promised to the claim",
        ),
        pytest.param(
            [MADE, claim("data", storage_class="made")],
            pod(claims=["data"]),
            [
                (
                    claim("data", storage_class="made"),
                    claim("data", storage_class="made", selected="n2", version="2"),
                ),
            ],
            id="a volume is to be made",
        ),
        pytest.param(
            [GPU, *SLICES, device_claim("c")],
            with_claims(pod(), "c"),
            [
                (
                    device_claim("c"),
                    device_claim(
                        "c",
                        allocated=allocation("gpu-n2", pool="n2", node="n2"),
                        users=[pod().metadata.uid],
                        version="2",
                    ),
                ),
            ],
            id="a device is allocated",
        ),
    ],
)
async def test_a_pod_is_decided_before_its_claims_change(
    objects: list[ApiObject], asked: Pod, changes: Changes
) -> None:
    told = Told(*NODES, *objects, asked)

    async with told.running():
        for old, new in changes:
            told.change(old, new)
        told.change(asked, asked.assigned_to("n2"))
        await told.until_looked_at()

    (found,) = told.found()
    assert found.result is Agreement.TIE, found.words
    assert found.num_feasible >= 2


async def test_a_change_of_somebody_else_decides_nothing() -> None:
    """A claim of a class that binds at once: until it is bound, the pod fits nowhere."""
    waiting, asked = claim("data", storage_class="now"), pod(claims=["data"])
    told = Told(*NODES, storage_class("now", mode="Immediate"), waiting, DISKS[1], asked)
    bound = claim("data", storage_class="now", bound_to="v2", version="2")

    async with told.running():
        told.change(waiting, bound)
        told.change(asked, asked.assigned_to("n2"))
        await told.until_looked_at()

    (found,) = told.found()
    assert found.result is Agreement.AGREED, found.words


async def test_of_two_pods_with_one_volume_each_is_decided_on_its_own_state() -> None:
    asked = [
        pod("a", uid="a", cpu="1", claims=["data"]),
        pod("b", uid="b", cpu="4", claims=["data"]),
    ]
    told = Told(node("n1"), node("n2"), MADE, claim("data", storage_class="made"), *asked)
    before = claim("data", storage_class="made")
    after = claim("data", storage_class="made", selected="n2", version="2")

    async with told.running():
        told.change(before, after)
        for each in asked:
            told.change(each, each.assigned_to("n2"))
        await told.until_looked_at()

    first, second = told.found()
    assert first.result is Agreement.TIE, first.words
    assert second.result is Agreement.REFUSED, second.words
    assert second.plugin == "NodeResourcesFit"


async def test_of_too_many_pods_that_wait_for_claims_some_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shadow, "MOST_AHEAD", 1)
    asked = [pod(name, uid=name, claims=[name]) for name in "ab"]
    before = [claim(name, storage_class="made") for name in "ab"]
    told = Told(*NODES, MADE, *before, *asked)

    async with told.running():
        for one in before:
            name = one.metadata.name
            told.change(one, claim(name, storage_class="made", selected="n2", version="2"))
        for each in asked:
            told.change(each, each.assigned_to("n2"))
        await told.until_looked_at()

    assert [each.uid for each in told.found()] == ["a"]
    assert told.shadow.comparisons.skipped[Skipped.CLAIMS] == 1
