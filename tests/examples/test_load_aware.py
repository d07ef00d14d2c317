"""Pods go where little is done, as far as that is known."""

import json
from typing import Any

import pytest
from examples.plugins.load_aware.load_aware import LoadAware, LoadAwareArgs
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from berth.runtime.clock import FakeClock, rfc3339
from berth.runtime.http_server import HttpServer
from berth.scheduler.config.defaults import read_args
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.testing import configuration
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness

GIB = 2**30
URL = "http://metrics.example.com/nodes"


def metrics(at: float, **usage: tuple[str, str]) -> bytes:
    """Return a NodeMetricsList, measured *at*; usage is cpu and memory by node."""
    items = [
        {
            "metadata": {"name": name},
            "timestamp": rfc3339(at),
            "window": "10s",
            "usage": {"cpu": cpu, "memory": memory},
        }
        for name, (cpu, memory) in usage.items()
    ]
    listed = {"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}
    return json.dumps(listed).encode()


class Scene:
    """A scheduler that scores by load alone, whose measurements a test makes up."""

    def __init__(self, **args: Any) -> None:
        self.answers: list[bytes | Exception] = []
        answers = self.answers

        class Measured(LoadAware):
            async def fetch(self) -> bytes:
                answer = answers.pop(0) if answers else OSError("nobody there")
                if isinstance(answer, Exception):
                    raise answer
                return answer

        config = configuration(Measured, args={"LoadAware": {"url": URL, **args}})
        (profile,) = config["profiles"]
        profile["plugins"]["score"] = {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": "LoadAware"}],
        }
        registry: dict[str, type[Plugin]] = {**IN_TREE, "LoadAware": Measured}
        self.harness = Harness(config=config, registry=registry)
        self.clock: FakeClock = self.harness.clock
        self._count = 0

    async def place(self, **more: Any) -> str:
        """Place another pod; return its node."""
        self._count += 1
        name = f"p{self._count}"
        self.harness.put(pod(name, cpu="100m", memory="64Mi", **more))
        await self.harness.until_idle()
        return self.harness.placements()[name]

    async def measure(self, at: float = 0.0, **usage: tuple[str, str]) -> None:
        """Have what was measured *at* seconds ago read, by placing a pod that is then gone."""
        self.answers.append(metrics(self.clock.now() - at, **usage))
        await self.place()
        self.harness.delete(self.harness.cluster.pods[f"default/p{self._count}"])


@pytest.fixture
def scene() -> Scene:
    made = Scene(refreshSeconds=15, staleSeconds=60)
    made.harness.put(node("busy", cpu="4", memory="8Gi"), node("idle", cpu="4", memory="8Gi"))
    return made


async def test_the_idle_node_is_preferred(scene: Scene) -> None:
    await scene.measure(busy=("3900m", "7Gi"), idle=("100m", "1Gi"))

    assert await scene.place() == "idle"


async def test_pods_placed_since_the_measurement_count(scene: Scene) -> None:
    """Otherwise all of a burst would go to the node that was the idlest."""
    await scene.measure(busy=("500m", "1Gi"), idle=("0", "1Gi"))

    placed = [await scene.place() for _ in range(8)]

    assert placed[:4] == ["idle"] * 4
    assert "busy" in placed[4:]


async def test_what_is_stale_is_not_believed(scene: Scene) -> None:
    await scene.measure(at=61, busy=("3900m", "7Gi"), idle=("0", "0"))
    scene.harness.put(pod("runs", cpu="1", node="idle"))

    assert await scene.place() == "busy"


async def test_a_node_without_a_measurement_is_evaluated_by_requests(scene: Scene) -> None:
    await scene.measure(busy=("2", "4Gi"))
    assert await scene.place() == "idle"

    scene.harness.put(pod("runs", cpu="3", memory="6Gi", node="idle"))

    assert await scene.place() == "busy"


async def test_it_asks_once_per_refresh_and_only_when_pods_come(scene: Scene) -> None:
    scene.answers += [metrics(0)] * 10
    for _ in range(3):
        await scene.place()
    assert len(scene.answers) == 9

    scene.clock.advance(300)
    assert len(scene.answers) == 9

    await scene.place()
    assert len(scene.answers) == 8


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OSError("connection refused"), id="nobody answers"),
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b'{"items": [{}]}', id="no NodeMetricsList"),
        pytest.param(metrics(0, busy=("much", "1Gi")), id="no quantity"),
        pytest.param(metrics(0, busy=("1", "1Gi")).replace(b"1970", b"when"), id="no time"),
    ],
)
async def test_a_bad_answer_is_logged_and_the_last_good_one_stands(
    scene: Scene, answer: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.measure(busy=("3900m", "7Gi"), idle=("100m", "1Gi"))
    scene.clock.advance(15)
    scene.answers.append(answer)

    assert await scene.place() == "idle"
    assert await scene.place() == "idle"
    assert [r.message for r in caplog.records] == ["node metrics not read"]


@given(
    used=st.lists(
        st.tuples(st.integers(0, 5_000), st.integers(0, 10 * GIB)), min_size=1, max_size=5
    ),
    weights=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
async def test_scores_are_the_weighted_mean_of_free_shares(
    used: list[tuple[int, int]], weights: tuple[int, int]
) -> None:
    scene = Scene(weights={"cpu": weights[0], "memory": weights[1]})
    names = [f"n{i}" for i in range(len(used))]
    scene.harness.put(*(node(name, cpu="4", memory="8Gi") for name in names))
    usage = {n: (f"{cpu}m", str(memory)) for n, (cpu, memory) in zip(names, used, strict=True)}
    if len(used) > 1:  # a single node is not scored
        await scene.measure(0, **usage)
    else:
        usage, used = {}, [(0, 0)]
    (profile,) = scene.harness.scheduler.profiles.values()
    (plugin,) = profile.scores
    nodes = scene.harness.cache.table

    scores = plugin.score(CycleState(), PodInfo(pod("p", cpu="1", memory="1Gi")), nodes)

    def share(allocatable: int, taken: int) -> int:
        return max(allocatable - taken, 0) * 100 // allocatable

    def wanted(cpu: int, memory: int) -> int:
        both = (share(4_000, cpu + 1_000), share(8 * GIB, memory + GIB))
        total = sum(weight * each for weight, each in zip(weights, both, strict=True))
        return total // max(sum(weights), 1)

    assert not isinstance(scores, Status)
    by_name = dict(zip(nodes.names(range(nodes.size)), scores.tolist(), strict=True))
    assert by_name == {n: wanted(*amount) for n, amount in zip(names, used, strict=True)}


@pytest.mark.parametrize(
    ("args", "field"),
    [
        pytest.param({}, ("url",), id="no address"),
        pytest.param({"url": "metrics"}, ("url",), id="no address at all"),
        pytest.param({"url": URL, "refreshSeconds": 0}, ("refreshSeconds",), id="all the time"),
        pytest.param({"url": URL, "weights": {"gpu": 1}}, ("weights", "gpu"), id="not measured"),
    ],
)
def test_args_that_cannot_be(args: dict[str, Any], field: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        read_args(args, LoadAwareArgs)

    (error,) = caught.value.errors()
    assert error["loc"] == field


@pytest.mark.wall
async def test_measurements_come_over_http(tmp_path: Any) -> None:
    asked: list[str] = []

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope)
        asked.append(request.headers["authorization"])
        await Response(metrics(0, n1=("1", "1Gi")))(scope, receive, send)

    server = HttpServer(serve)
    await server.start("127.0.0.1", 0)
    token = tmp_path / "token"
    token.write_text("secret\n")
    args = LoadAwareArgs(url=f"{server.url}/nodes", token_file=str(token))
    try:
        plugin = LoadAware(args, Scene().harness.core.handle)
        answer = await plugin.fetch()
    finally:
        await server.stop()

    assert answer == metrics(0, n1=("1", "1Gi"))
    assert asked == ["Bearer secret"]
