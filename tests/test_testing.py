"""What authors of plugins test with: the decisions are the scheduler's."""

from typing import Any

import pytest

from berth.config.errors import ConfigError
from berth.framework.interface import PluginArgs
from berth.framework.scalar import ScalarFilter, ScalarScore
from berth.framework.status import Status
from berth.testing import (
    Placement,
    configuration,
    explain,
    manifests,
    node,
    pod,
    rejections,
    schedule,
    scores,
)

SMALL, LARGE = node("small", cpu="1"), node("large", cpu="8", labels={"size": "large"})


class OnlyArgs(PluginArgs):
    prefix: str = "web"


class Only(ScalarFilter, ScalarScore):
    """Lets pods whose names begin with a prefix on large nodes only, and prefers the small ones."""

    NAME = "Only"
    ARGS = OnlyArgs

    def filter_node(self, state: Any, pod: Any, node_info: Any) -> Status | None:
        if pod.name.startswith(self.args.prefix) and "size" not in node_info.labels:
            return Status.unschedulable("node(s) were too small for the name")
        return None

    def score_node(self, state: Any, pod: Any, node_info: Any) -> int:
        return 0 if "size" in node_info.labels else 100


def test_pods_are_placed_one_after_the_other() -> None:
    pods = [pod("a", cpu="6"), pod("b", cpu="6"), pod("c", cpu="1")]

    assert schedule(pods, objects=[SMALL, LARGE]) == {
        "default/a": Placement("large"),
        "default/b": Placement(None, "0/2 nodes are available: 2 Insufficient cpu."),
        "default/c": Placement("large"),
    }


def test_plugins_decide_beside_the_default_ones() -> None:
    placed = schedule([pod("web"), pod("job")], objects=[SMALL, LARGE], plugins=[Only])

    assert [placed[f"default/{name}"].node for name in ("web", "job")] == ["large", "small"]


def test_what_a_plugin_says_of_each_node() -> None:
    of_web = explain(pod("web"), objects=[SMALL, LARGE], plugins=[Only])
    of_job = explain(pod("job"), objects=[SMALL, LARGE], plugins=[Only])

    assert rejections(of_web, "Only") == {"small": ("node(s) were too small for the name",)}
    assert scores(of_web, "Only") == {"large": 0}
    assert scores(of_job, "Only") == {"small": 100, "large": 0}


def test_args_and_weights_are_configured() -> None:
    config = configuration(Only, args={"Only": {"prefix": "job"}}, weights={"Only": 5})

    of_job = explain(pod("job"), objects=[SMALL, LARGE], plugins=[Only], config=config)
    of_web = explain(pod("web"), objects=[SMALL, LARGE], plugins=[Only], config=config)

    assert rejections(of_job, "Only") == {"small": ("node(s) were too small for the name",)}
    assert of_web.choice is not None
    assert of_web.choice.node == "small"


def test_args_are_checked() -> None:
    config = configuration(Only, args={"Only": {"prefix": 7}})

    with pytest.raises(ConfigError, match=r"profiles\[0\].pluginConfig\[0\].args.prefix: Invalid"):
        schedule([pod("web")], objects=[SMALL], plugins=[Only], config=config)


def test_objects_may_be_manifests() -> None:
    objects = manifests(
        """
        apiVersion: v1
        kind: Node
        metadata: {name: n1, labels: {disk: ssd}}
        status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
        ---
        # nothing here
        """
    )

    placed = schedule([pod("a", nodeSelector={"disk": "ssd"})], objects=objects)

    assert placed == {"default/a": Placement("n1")}


def test_pods_that_run_take_room() -> None:
    running = pod("runs", cpu="8", node="large")

    placed = schedule([pod("a", cpu="2")], objects=[SMALL, LARGE, running])

    assert placed["default/a"].node is None
