"""Pods of a group share one claim, from its template to the end of the group, on a cluster."""

from typing import Any, Final

import pytest

from tests.tools.up.world import PODS, Object, pod, running_world

pytestmark = [pytest.mark.wall, pytest.mark.slow]

DEVICES: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{DEVICES}/namespaces/default/resourceclaims"
GROUPS: Final = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
GATES: Final = ("GenericWorkload", "GangScheduling", "DRAWorkloadResourceClaims")
CONFIG: Final[Object] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "featureGates": dict.fromkeys(GATES, True),
}
SHARED: Final = {"name": "gpu", "resourceClaimTemplateName": "gpu"}


def slice_of(node: str) -> Object:
    return {
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }


def group() -> Object:
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": [SHARED]}
    return {"metadata": {"name": "train"}, "spec": spec}


def worker(index: int) -> Object:
    return pod(
        f"w-{index}",
        resourceClaims=[SHARED],
        schedulingGroup={"podGroupName": "train"},
    )


def consumers(claim: Object) -> list[Any]:
    return [(each["resource"], each["uid"]) for each in claim["status"].get("reservedFor") or ()]


async def test_a_gang_shares_a_claim_that_ends_with_its_group() -> None:
    async with running_world(nodes=2, config=CONFIG) as world:
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
        spec = {"spec": {"devices": {"requests": requests}}}
        await world.create(f"{DEVICES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
        await world.create(
            f"{DEVICES}/resourceslices", *map(slice_of, await world.items("/api/v1/nodes"))
        )
        await world.create(
            f"{DEVICES}/namespaces/default/resourceclaimtemplates",
            {"metadata": {"name": "gpu"}, "spec": spec},
        )
        names = [f"w-{index}" for index in range(3)]
        used = set()
        for _ in range(2):  # a group that is made again has nothing of the one before
            # The pods come first: whose their claims are they learn from the group.
            await world.create(PODS, *map(worker, range(3)))
            await world.create(GROUPS, group())
            pods = await world.until_running(*names)
            [(name, claim)] = (await world.items(CLAIMS)).items()
            made = (await world.items(GROUPS))["train"]
            uid = made["metadata"]["uid"]
            assert consumers(claim) == [("podgroups", uid)]
            told = [{"name": "gpu", "resourceClaimName": name}]
            assert made["status"]["resourceClaimStatuses"] == told
            assert all(each["status"]["resourceClaimStatuses"] == told for each in pods.values())
            assert len({each["spec"]["nodeName"] for each in pods.values()}) == 1
            used.add(uid)

            await world.ask("DELETE", f"{GROUPS}/train")
            for each in names:
                await world.ask("DELETE", f"{PODS}/{each}")
            await world.until(GROUPS, lambda groups: not groups)
            await world.until(CLAIMS, lambda claims: not claims)
    assert len(used) == 2
