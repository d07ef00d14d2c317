"""What authors of plugins test with: the decisions are the scheduler's."""

from typing import Any

import pytest

from berth.plugin import (
    SKIP,
    CycleState,
    FilterPlugin,
    NodeTable,
    PluginArgs,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScalarFilter,
    ScalarScore,
    ScorePlugin,
    Scores,
    Status,
    Verdict,
    default_normalize,
)
from berth.scheduler.config.errors import ConfigError
from berth.testing import (
    Placement,
    PluginFailedError,
    configuration,
    explain,
    manifests,
    node,
    pod,
    rejections,
    run_filter,
    run_score,
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


# One plugin alone.


def test_a_filter_alone_says_why_of_each_node() -> None:
    objects = [SMALL, LARGE]

    assert run_filter(Only, pod("web"), objects=objects) == {
        "small": ("node(s) were too small for the name",),
        "large": (),
    }
    assert run_filter(Only, pod("web"), objects=objects, args={"prefix": "job"}) == {
        "small": (),
        "large": (),
    }


def test_a_score_alone() -> None:
    assert run_score(Only, pod("job"), objects=[SMALL, LARGE]) == {"small": 100, "large": 0}


class Counted(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Asks in advance how many pods there are, and gives each node its number of pods."""

    NAME = "Counted"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> Status | PreFilterResult | None:
        if "skip" in pod.labels:
            return SKIP
        if "refuse" in pod.labels:
            return Status.unresolvable("not today")
        if "narrow" in pod.labels:
            return PreFilterResult(frozenset({"small"}))
        state.write(self.NAME, int(nodes.pod_count.sum()))
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        code = Status.error if "break" in pod.labels else Status.unschedulable
        found = state.get(self.NAME)
        return Verdict.reject(code(f"{found} pods"), where=nodes.pod_count > 0)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return SKIP if "skip" in pod.labels else None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores | Status:
        return Status.error("no idea") if "break" in pod.labels else nodes.pod_count.copy()

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores)


RUNNING = pod("runs", node="large")


@pytest.mark.parametrize(
    ("label", "small", "large"),
    [
        pytest.param("none", (), ("1 pods",), id="filter reads what PreFilter wrote"),
        pytest.param("skip", (), (), id="PreFilter says that there is nothing to filter"),
        pytest.param("refuse", ("not today",), ("not today",), id="PreFilter refuses the pod"),
        pytest.param(
            "narrow",
            (),
            ("node(s) didn't satisfy plugin(s) [Counted]",),
            id="PreFilter leaves one node",
        ),
    ],
)
def test_pre_filter_comes_first(label: str, small: Any, large: Any) -> None:
    asked = pod("a", labels={label: ""})

    assert run_filter(Counted, asked, objects=[SMALL, LARGE, RUNNING]) == {
        "small": small,
        "large": large,
    }


@pytest.mark.parametrize(
    ("label", "normalized", "want"),
    [
        pytest.param("none", True, {"small": 0, "large": 100}, id="from 0 to 100"),
        pytest.param("none", False, {"small": 0, "large": 1}, id="as the plugin gave them"),
        pytest.param("skip", True, {}, id="PreScore says that there is nothing to score"),
    ],
)
def test_scores_of_one_plugin(label: str, normalized: bool, want: dict[str, int]) -> None:
    asked, objects = pod("a", labels={label: ""}), [SMALL, LARGE, RUNNING]

    assert run_score(Counted, asked, objects=objects, normalized=normalized) == want


@pytest.mark.parametrize(("run", "error"), [(run_filter, "1 pods"), (run_score, "no idea")])
def test_an_error_of_the_plugin_is_raised(run: Any, error: str) -> None:
    asked = pod("a", labels={"break": ""})

    with pytest.raises(PluginFailedError, match=error):
        run(Counted, asked, objects=[SMALL, LARGE, RUNNING])
