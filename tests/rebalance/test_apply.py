"""A proposal that is carried out: what is asked of the API server, and when it stops."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec
import pytest

from berth.client.errors import NotFoundError, TooManyRequestsError
from berth.clock import FakeClock
from berth.rebalance.apply import Applying, RebalanceStoppedError
from berth.rebalance.proposal import Eviction, Placement, Proposal, Round, Step

PODS = "/api/v1/namespaces/default/pods"
READY = [{"type": "Ready", "status": "True"}]


class ImpatientClock(FakeClock):
    """It does not wait: time passes when somebody sleeps."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)


class FakeApi:
    """A cluster in which an evicted pod is made again at once, and ready a moment later."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.asked: list[str] = []
        self.goes_to = {"x": "b", "y": "b"}
        self.refusals = 0
        self.never_ready = False
        self.wanted_goes_to = "a"
        self.pods: dict[str, Any] = {}
        self.ready_at: dict[str, float] = {}
        for name in ("x", "y"):
            self.add(name, "a", delay=-1)
        self.add("w", "", delay=-1, owner="")

    def add(self, name: str, node: str, *, delay: float, owner: str = "uid-web") -> None:
        reference = [{"uid": owner, "controller": True}] if owner else []
        meta = {"name": name, "uid": f"uid-{name}", "ownerReferences": reference}
        self.pods[name] = {"metadata": meta, "spec": {"nodeName": node}, "status": {}}
        self.ready_at[name] = self.clock.now() + delay

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        if method != "GET":
            self.asked.append(f"{method} {path}")
        return msgspec.json.encode(self.answer(method, path, body))

    def answer(self, method: str, path: str, body: bytes | None) -> Any:
        if method == "PATCH":
            assert body is not None
            assert msgspec.json.decode(body)["spec"]["unschedulable"] in (True, None)
            return {}
        if path == PODS:
            for name, pod in self.pods.items():
                ready = self.ready_at[name] <= self.clock.now() and not self.never_ready
                pod["status"]["conditions"] = READY if ready or "-2" not in name else []
            return {"items": list(self.pods.values())}
        name = path.removeprefix(f"{PODS}/").removesuffix("/eviction")
        if name not in self.pods:
            raise NotFoundError(404, "NotFound", f'pods "{name}" not found')
        if method == "POST":
            assert body is not None
            preconditions = msgspec.json.decode(body)["deleteOptions"]["preconditions"]
            assert preconditions == {"uid": f"uid-{name}"}
            if self.refusals:
                self.refusals -= 1
                raise TooManyRequestsError(429, "TooManyRequests", "it would violate the budget")
            del self.pods[name]
            self.add(f"{name}-2", self.goes_to[name], delay=2)
            self.pods["w"]["spec"]["nodeName"] = self.wanted_goes_to
            return {}
        return self.pods[name]

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        yield b""


def eviction(name: str) -> Eviction:
    return Eviction(f"default/{name}", f"uid-{name}", "a", 0, "ReplicaSet/web", "b", "b, why")


TWO_ROUNDS = Proposal(
    (
        Step(
            "default/w fits",
            "n",
            rounds=(
                Round((eviction("x"),)),
                Round((eviction("y"),), (Placement("default/w", "a", "a, why"),)),
            ),
        ),
    )
)


class Run:
    def __init__(self) -> None:
        self.clock = ImpatientClock()
        self.api = FakeApi(self.clock)
        self.told: list[str] = []

    def apply(self, proposal: Proposal = TWO_ROUNDS, *, done: bool = True) -> float:
        """Carry the proposal out; return how long it took."""
        begin = self.clock.now()
        applying = Applying(self.api, clock=self.clock, tell=self.told.append, timeout=30)
        assert asyncio.run(applying.apply(proposal)) is done
        return self.clock.now() - begin


def test_nodes_are_cordoned_and_pods_evicted_round_by_round() -> None:
    run = Run()
    seconds = run.apply()
    assert run.api.asked == [
        "PATCH /api/v1/nodes/n",
        f"POST {PODS}/x/eviction",
        f"POST {PODS}/y/eviction",
    ]
    assert 4 <= seconds <= 5, "each round waits for its pods"
    assert run.told == [
        "cordon n",
        "evict default/x (ReplicaSet/web, priority 0) from a",
        "evict default/y (ReplicaSet/web, priority 0) from a",
        "default/w goes to a",
        "default/w fits",
    ]


def test_a_budget_that_is_not_free_yet_is_waited_for() -> None:
    run = Run()
    run.api.refusals = 3
    run.apply()
    assert run.api.asked.count(f"POST {PODS}/x/eviction") == 4


@pytest.mark.parametrize(
    ("change", "why", "evicted"),
    [
        pytest.param(
            {"goes_to": {"x": "c", "y": "b"}},
            "a new pod went to c, not to b as proposed",
            1,
            id="the scheduler decides otherwise",
        ),
        pytest.param(
            {"never_ready": True},
            "after 30 seconds the pods in the place of default/x are not ready",
            1,
            id="a pod does not become ready",
        ),
        pytest.param(
            {"refusals": 1000},
            "after 30 seconds default/x is not evicted: it would violate the budget",
            61,
            id="the budget never allows it",
        ),
        pytest.param(
            {"wanted_goes_to": "c"},
            "default/w went to c, not to a as proposed",
            2,
            id="the pod that was to fit goes elsewhere",
        ),
    ],
)
def test_it_stops(change: dict[str, Any], why: str, evicted: int) -> None:
    run = Run()
    for name, value in change.items():
        setattr(run.api, name, value)
    with pytest.raises(RebalanceStoppedError, match=why):
        run.apply()
    assert sum(each.startswith("POST") for each in run.api.asked) == evicted


def test_it_stops_when_a_pod_is_gone() -> None:
    run = Run()
    del run.api.pods["x"]
    with pytest.raises(
        RebalanceStoppedError, match=r'default/x is not evicted: pods "x" not found'
    ):
        run.apply()


def test_chance_may_decide_between_equals_and_then_the_rest_is_proposed_anew() -> None:
    run = Run()
    run.api.goes_to["x"] = "c"
    first = msgspec.structs.replace(eviction("x"), or_to=("c",))
    step = TWO_ROUNDS.steps[0]
    rounds = (Round((first,)), step.rounds[1])
    run.apply(Proposal((msgspec.structs.replace(step, rounds=rounds),)), done=False)
    assert run.api.asked[-1] == f"POST {PODS}/x/eviction"
    run = Run()
    run.api.goes_to["x"] = "c"
    run.apply(Proposal((Step("x is elsewhere", rounds=(Round((first,)),)),)))


def test_a_node_is_uncordoned_before_the_pod_that_waits_gets_its_turn() -> None:
    run = Run()
    rounds = (Round((eviction("x"),), (Placement("default/w", "a", "a, why"),)),)
    run.apply(Proposal((Step("default/w fits", "a", uncordon=True, rounds=rounds),)))
    assert run.told == [
        "cordon a",
        "evict default/x (ReplicaSet/web, priority 0) from a",
        "uncordon a",
        "default/w goes to a",
        "default/w fits",
    ]


def test_a_node_is_uncordoned_also_when_it_stops() -> None:
    run = Run()
    run.api.refusals = 1000
    step = Step("default/w fits", "a", uncordon=True, rounds=(Round((eviction("x"),)),))
    with pytest.raises(RebalanceStoppedError):
        run.apply(Proposal((step,)))
    assert run.told[-1] == "uncordon a"
