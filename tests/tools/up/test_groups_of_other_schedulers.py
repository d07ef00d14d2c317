"""Manifests for the coscheduling plugin and for Volcano, as they are, on an embedded cluster."""

from typing import Any, Final

import pytest

from tests.tools.up.world import PODS, Object, pod, running_world

pytestmark = [pytest.mark.wall, pytest.mark.slow]

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GATES: Final = ("GenericWorkload", "GangScheduling", "CoschedulingPodGroups", "VolcanoPodGroups")
APIS: Final = {"scheduling.x-k8s.io": "v1alpha1", "scheduling.volcano.sh": "v1beta1"}
CONFIG: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "featureGates": dict.fromkeys(GATES, True),
    "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "volcano"}],
}


def definition(group: str, version: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"podgroups.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "kind": "PodGroup"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def worker(name: str, *, metadata: Object, **spec: Any) -> Object:
    made = pod(name, cpu="1", **spec)
    made["metadata"] |= metadata
    return made


@pytest.mark.parametrize(
    ("group", "metadata", "spec"),
    [
        pytest.param(
            "scheduling.x-k8s.io",
            {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
            {},
            id="coscheduling",
        ),
        pytest.param(
            "scheduling.volcano.sh",
            {"annotations": {"scheduling.k8s.io/group-name": "train"}},
            {"schedulerName": "volcano"},
            id="Volcano",
        ),
    ],
)
async def test_a_gang_starts_whole(group: str, metadata: Object, spec: Object) -> None:
    definitions = [definition(*each) for each in APIS.items()]
    path = f"/apis/{group}/{APIS[group]}/namespaces/default/podgroups"
    async with running_world(nodes=2, cpu="3", config=CONFIG, before={CRDS: definitions}) as world:
        small, large = (
            [worker(f"{name}-{index}", metadata=metadata, **spec) for index in range(count)]
            for name, count in (("a", 2), ("b", 1))
        )
        await world.create(PODS, *small, pod("single", cpu="1"))
        await world.until_running("single")
        gang = {"apiVersion": f"{group}/{APIS[group]}", "kind": "PodGroup"}
        await world.create(path, gang | {"metadata": {"name": "train"}, "spec": {"minMember": 3}})
        await world.create(PODS, pod("after", cpu="100m"))
        pods = await world.until_running("after")
        assert not any("nodeName" in pods[name]["spec"] for name in ("a-0", "a-1"))
        await world.create(PODS, *large)
        await world.until_running("a-0", "a-1", "b-0")
        assert "status" not in (await world.items(path))["train"], "its controller writes it"
