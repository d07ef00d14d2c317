"""The autoscaler in a whole cluster: machines come, pods run, machines go. Time is virtual."""

from typing import Any

import yaml

from berth.cluster.kubelet.node_template import NodeTemplate
from berth.runtime.duration import Duration
from berth.tools.autoscaler.node_groups import GROUP_LABEL, NodeGroup
from berth.tools.autoscaler.options import AutoscalingOptions
from tests.tools.autoscaler.live import World, run

SYSTEM = "/api/v1/namespaces/kube-system"


def group(name: str = "general", *, cpu: str = "4", **fields: Any) -> NodeGroup:
    template = NodeTemplate(
        prefix=f"{name}-", cpu=cpu, zones=0, labels={GROUP_LABEL: name, **fields.pop("labels", {})}
    )
    return NodeGroup(name, **{"max_size": 5, "template": template, **fields})


async def target_of(world: World, name: str) -> int:
    """Return the target size of a group, as the status has it."""
    found = await world.ask("GET", f"{SYSTEM}/configmaps/cluster-autoscaler-status")
    groups = yaml.safe_load(found["data"]["status"])["nodeGroups"]
    (size,) = (each["health"]["cloudProviderTarget"] for each in groups if each["name"] == name)
    return int(size)


def test_nodes_come_for_pods_that_fit_nowhere_and_go_when_they_do() -> None:
    async def scenario(world: World) -> None:
        await world.until_nodes("general-0")
        await world.deployment("web", replicas=9, cpu="1")

        took = await world.until_running(9)

        assert 40.0 <= took < 80.0
        assert set(await world.items("/api/v1/nodes")) == {"general-0", "general-1", "general-2"}
        assert set(await world.events("TriggeredScaleUp")) == {
            "pod triggered scale-up: [{general 1->3 (max: 5)}]"
        }
        assert await world.events("ScaledUpGroup") == [
            "Scale-up: setting group general size to 3 instead of 1 (max: 5)",
            "Scale-up: group general size set to 3 instead of 1 (max: 5)",
        ]

        await world.scale("web", 2)
        took = await world.until("/api/v1/nodes", lambda nodes: len(nodes) == 1)

        assert took >= 540.0
        await world.until_running(2)
        while await target_of(world, "general") != 1:
            await world.clock.sleep(5.0)
        assert "marked the node as toBeDeleted/unschedulable" in await world.events("ScaleDown")

    run(scenario, group(min_size=1, initial_size=1, provision_seconds=40.0))


def test_a_pod_that_no_group_helps_is_told_why() -> None:
    async def scenario(world: World) -> None:
        await world.deployment("large", replicas=1, cpu="64")

        (message,) = await world.until_event("NotTriggerScaleUp")

        assert message == (
            "pod didn't trigger scale-up: 2 Insufficient cpu, 1 node(s) had untolerated taint(s)"
        )
        assert await world.items("/api/v1/nodes") == {}

    tainted = NodeTemplate(prefix="gpu-", zones=0, taints=({"key": "gpu", "effect": "NoSchedule"},))
    run(scenario, group("a"), group("b"), NodeGroup("gpu", max_size=2, template=tainted))


def test_a_drain_waits_for_what_a_budget_allows() -> None:
    """Of the two pods on the node one may go at a time: the other eviction is refused at first."""

    async def scenario(world: World) -> None:
        await world.until_nodes("general-0", "general-1")
        await world.ask(
            "POST",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {
                "metadata": {"name": "web"},
                "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
            },
        )
        await world.deployment("web", replicas=4, cpu="500m")
        await world.until_running(4)
        pods = await world.items("/api/v1/namespaces/default/pods")
        assert {pod["spec"]["nodeName"] for pod in pods.values()} == {"general-0", "general-1"}

        await world.until("/api/v1/nodes", lambda nodes: len(nodes) == 1)
        await world.until_running(4)

        assert await world.events("ScaleDownFailed") == []
        assert await world.events("ScaleDown")

    run(
        scenario,
        group(min_size=1, initial_size=2),
        options=AutoscalingOptions(scale_down_unneeded_time=Duration.of(30.0)),
    )


def test_a_group_whose_machines_do_not_come_rests_and_another_grows() -> None:
    async def scenario(world: World) -> None:
        await world.deployment("web", replicas=1, cpu="1")

        await world.until_nodes("dear-0")

        assert await world.events("FailedToScaleUpGroup") == [
            "Scale-up failed for group cheap: no capacity for cheap-0"
        ]
        found = await world.ask("GET", f"{SYSTEM}/configmaps/cluster-autoscaler-status")
        cheap, _ = yaml.safe_load(found["data"]["status"])["nodeGroups"]
        assert cheap["scaleUp"]["status"] == "Backoff"
        assert cheap["scaleUp"]["backoffInfo"]["errorCode"] == "outOfResource"

    run(
        scenario,
        group("cheap", price=0.1, failure_rate=1.0),
        group("dear", price=0.9),
        options=AutoscalingOptions(expander="price"),
    )


def test_machines_that_never_register_are_given_up() -> None:
    async def scenario(world: World) -> None:
        await world.deployment("web", replicas=1, cpu="1")

        assert await world.until_event("ScaleUpTimedOut") == [
            "Nodes added to group slow failed to register within 15m0s"
        ]

    run(scenario, group("slow", provision_seconds=3_600.0))


def test_daemon_pods_count_on_new_nodes() -> None:
    async def scenario(world: World) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
        await world.ask(
            "POST",
            "/apis/apps/v1/namespaces/default/daemonsets",
            {
                "metadata": {"name": "agent"},
                "spec": {
                    "selector": {"matchLabels": {"app": "agent"}},
                    "template": {
                        "metadata": {"labels": {"app": "agent"}},
                        "spec": {"containers": [container]},
                    },
                },
            },
        )
        await world.deployment("web", replicas=3, cpu="1")

        await world.until_running(6)

        assert len(await world.items("/api/v1/nodes")) == 3

    run(scenario, group())
