"""A proposal that is carried out: what is asked of the API server, and when it stops."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec
import pytest

from berth.kube.client.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from berth.runtime.clock import FakeClock
from berth.tools.rebalance.apply import WATCH_SECONDS, Applying
from berth.tools.rebalance.cordons import ANNOTATION, Cordons
from berth.tools.rebalance.patient_api import PatientApi, RebalanceStoppedError
from berth.tools.rebalance.proposal import Eviction, Placement, Proposal, Round, Step

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
        self.changed_at = 0.0
        """When the last change was asked for."""
        self.goes_to = {"x": "b", "y": "b"}
        self.refusals = 0
        self.never_ready = False
        self.wanted_goes_to = "a"
        self.stays_pending = False
        self.conflicts = 0
        self.lost_answers = 0
        self.nodes: dict[str, Any] = {name: {"spec": {}, "annotations": {}} for name in "abn"}
        self.pods: dict[str, Any] = {}
        self.ready_at: dict[str, float] = {}
        for name in ("x", "y"):
            self.add(name, "a", delay=-1)
        self.add("w", "", delay=-1, owner="")

    def add(self, name: str, node: str, *, delay: float, owner: str = "uid-web") -> None:
        reference = [{"uid": owner, "controller": True}] if owner else []
        meta = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "ownerReferences": reference,
        }
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
            self.changed_at = self.clock.now()
        return msgspec.json.encode(self.answer(method, path, body))

    def answer(self, method: str, path: str, body: bytes | None) -> Any:
        if path.startswith("/api/v1/nodes/"):
            return self.node(path.removeprefix("/api/v1/nodes/"), body)
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
            self.add(f"{name}-2", "" if self.stays_pending else self.goes_to[name], delay=2)
            self.pods["w"]["spec"]["nodeName"] = self.wanted_goes_to
            return {}
        return self.pods[name]

    def node(self, name: str, body: bytes | None) -> Any:
        """Read a node, or patch it."""
        node = self.nodes[name]
        if body is not None:
            if self.conflicts:
                self.conflicts -= 1
                raise ConflictError(409, "Conflict", "the object has been modified")
            patch = msgspec.json.decode(body)
            assert patch["metadata"]["resourceVersion"] == "1"
            for what, change in (
                (node["annotations"], patch["metadata"]["annotations"]),
                (node["spec"], patch["spec"]),
            ):
                what.update(change)
                for key in [key for key, value in what.items() if value is None]:
                    del what[key]
            if self.lost_answers:
                self.lost_answers -= 1
                raise UnavailableError("connection reset", sent=None)
        meta = {"name": name, "resourceVersion": "1", "annotations": node["annotations"]}
        return {"metadata": meta, "spec": node["spec"]}

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
        patient = PatientApi(self.api, clock=self.clock, timeout=30)
        self.cordons = Cordons(patient, run="us", tell=self.told.append)
        self.applying = Applying(
            patient, self.cordons, clock=self.clock, tell=self.told.append, timeout=30
        )

    def apply(self, proposal: Proposal = TWO_ROUNDS) -> float:
        """Carry the proposal out; return how long it took."""
        begin = self.clock.now()
        asyncio.run(self.applying.carry_out(proposal))
        return self.clock.now() - begin

    @property
    def evicted(self) -> int:
        return sum(each.startswith("POST") for each in self.api.asked)


def test_nodes_are_cordoned_and_pods_evicted_round_by_round() -> None:
    run = Run()
    seconds = run.apply()
    assert run.api.asked == [
        "PATCH /api/v1/nodes/n",
        f"POST {PODS}/x/eviction",
        f"POST {PODS}/y/eviction",
    ]
    assert 5 <= seconds <= 6, "each round waits for its pods, and the first for the cordon"
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


def both(*nodes: str) -> Proposal:
    """Evict x and y at once; the first goes to the first of *nodes*."""
    evictions = (
        msgspec.structs.replace(eviction(name), goes_to=node)
        for name, node in zip("xy", nodes, strict=True)
    )
    return Proposal((Step("a is empty", "a", rounds=(Round(tuple(evictions)),)),))


@pytest.mark.parametrize("proposed", ["bc", "cb"])
def test_pods_may_be_made_again_in_another_order(proposed: str) -> None:
    run = Run()
    run.api.goes_to = {"x": "b", "y": "c"}
    run.apply(both(*proposed))
    assert run.told[-1] == "a is empty"


@pytest.mark.parametrize(
    ("change", "told", "seconds"),
    [
        pytest.param(
            {"goes_to": {"x": "c", "y": "b"}},
            "evict default/x (ReplicaSet/web, priority 0) from a",
            3,
            id="the scheduler decides otherwise",
        ),
        pytest.param(
            {"wanted_goes_to": "c"},
            "default/w goes to c",
            5,
            id="the pod that was to fit goes elsewhere",
        ),
        pytest.param(
            {"wanted_goes_to": ""},
            "evict default/y (ReplicaSet/web, priority 0) from a",
            35,
            id="the pod that was to fit gets no node for some time",
        ),
    ],
)
def test_what_goes_otherwise_is_to_be_proposed_anew(
    change: dict[str, Any], told: str, seconds: float
) -> None:
    run = Run()
    for name, value in change.items():
        setattr(run.api, name, value)
    assert run.apply() == pytest.approx(seconds, abs=1)
    assert run.told[-1] == told


def test_a_pod_that_is_gone_is_not_evicted_and_nobody_with_it() -> None:
    run = Run()
    del run.api.pods["y"]
    run.apply(both("b", "c"))
    assert (run.evicted, run.told[-1]) == (0, "default/y is gone already")


@pytest.mark.parametrize(
    ("change", "why", "evicted"),
    [
        pytest.param(
            {"never_ready": True},
            "after 30 seconds the pods in the place of default/x are not ready",
            1,
            id="a pod does not become ready",
        ),
        pytest.param(
            {"stays_pending": True, "never_ready": True},
            "after 30 seconds the pods in the place of default/x are not ready",
            1,
            id="a pod gets no node, not even the one that it had",
        ),
        pytest.param(
            {"refusals": 1000},
            "default/x is not evicted: after 30 seconds: it would violate the budget",
            61,
            id="the budget never allows it",
        ),
    ],
)
def test_it_stops(change: dict[str, Any], why: str, evicted: int) -> None:
    run = Run()
    for name, value in change.items():
        setattr(run.api, name, value)
    with pytest.raises(RebalanceStoppedError, match=why):
        run.apply()
    assert run.evicted == evicted


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


def test_what_proposes_anew_has_time_to_hear_what_was_changed() -> None:
    """Else it takes the node for cordoned, and evicts more."""
    run = Run()
    run.api.goes_to["x"] = "n"
    rounds = (Round((eviction("x"),), (Placement("default/w", "a", "a, why"),)),)
    run.apply(Proposal((Step("default/w fits", "a", uncordon=True, rounds=rounds),)))
    assert run.told[-1] == "uncordon a"
    assert run.clock.now() >= run.api.changed_at + WATCH_SECONDS


# Cordons.

FREE: dict[str, Any] = {"spec": {}, "annotations": {}}


def cordon_and_lift(run: Run) -> Any:
    """Cordon the node n; return how it is then, and how after it is uncordoned again."""

    async def work() -> Any:
        await run.cordons.cordon("n")
        between = msgspec.json.decode(msgspec.json.encode(run.api.nodes["n"]))
        await run.cordons.lift()
        return between

    return asyncio.run(work()), run.api.nodes["n"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="simply"),
        pytest.param({"conflicts": 2}, id="the node is changed by others meanwhile"),
        pytest.param({"lost_answers": 1}, id="the answer is lost"),
    ],
)
def test_a_cordon_names_its_run_and_is_undone(change: dict[str, int]) -> None:
    run = Run()
    for name, value in change.items():
        setattr(run.api, name, value)
    between, after = cordon_and_lift(run)
    assert between == {"spec": {"unschedulable": True}, "annotations": {ANNOTATION: "us"}}
    assert after == FREE


def test_the_cordons_of_others_stay() -> None:
    run = Run()
    run.api.nodes["n"] = theirs = {"spec": {"unschedulable": True}, "annotations": {}}
    assert cordon_and_lift(run) == (theirs, theirs)
    assert run.api.asked == []


def test_a_node_that_cannot_be_uncordoned_is_told() -> None:
    run = Run()

    async def work() -> None:
        await run.cordons.cordon("n")
        run.cordons.names.add("a")
        run.api.nodes["a"]["annotations"][ANNOTATION] = "us"
        run.api.node = forbidden  # type: ignore[method-assign]
        await run.cordons.lift()

    def forbidden(name: str, body: bytes | None) -> Any:
        raise ForbiddenError(403, "Forbidden", f"you cannot patch {name}")

    asyncio.run(work())
    assert run.told[1:] == [
        f"{name} stays cordoned: you cannot patch {name}; `berth rebalance --uncordon` uncordons it"
        for name in "an"
    ]
