"""What kube-scheduler asked extenders and was answered, asked again by us (both forms)."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from berth.scheduler.cache.cache import Cache
from berth.scheduler.extender.extender import Extender
from berth.scheduler.extender.whole_objects import decode_node, decode_pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from tests.builders import node, pod
from tests.scheduler.extender.fakes import FakeNetwork, config, extenders

RECORDED = Path(__file__).parent / "recorded"


class Call(NamedTuple):
    form: str
    number: int
    path: str
    headers: dict[str, str]
    request: dict[str, Any]
    response: Any


def calls() -> list[Call]:
    found = []
    for form in ("full-nodes", "node-names"):
        lines = (RECORDED / f"extender-{form}.jsonl").read_bytes().splitlines()
        for number, line in enumerate(lines):
            said = msgspec.json.decode(line)
            kept = (said["path"], said["headers"], said["request"], said["response"])
            found.append(Call(form, number, *kept))
    return found


def recorded(verb: str) -> pytest.MarkDecorator:
    chosen = [call for call in calls() if call.path.endswith(f"/{verb}")]
    assert chosen
    return pytest.mark.parametrize(
        "call", [pytest.param(c, id=f"{c.form}, line {c.number}") for c in chosen]
    )


def asked(call: Call) -> tuple[Extender, FakeNetwork]:
    """Give an extender of the recorded form, which answers what was recorded."""
    network = FakeNetwork({call.path: call.response})
    is_name_form = call.form == "node-names"
    made = config("http://recorded/scheduler/", node_cache_capable=is_name_form, weight=2)
    (extender,) = extenders(network, made)
    return extender, network


def check(call: Call, network: FakeNetwork) -> None:
    assert network.requests == [(call.path, call.request)]
    (headers,) = network.headers
    assert {name: headers[name] for name in call.headers} == call.headers


def waiting(call: Call) -> PodInfo:
    return PodInfo(decode_pod(msgspec.json.encode(call.request["Pod"])))


def nodes(call: Call) -> list[Any]:
    if call.request["Nodes"] is None:
        return [node(name) for name in call.request["NodeNames"]]
    return [decode_node(msgspec.json.encode(item)) for item in call.request["Nodes"]["items"]]


@recorded("filter")
async def test_filter(call: Call) -> None:
    extender, network = asked(call)
    sent = nodes(call)
    answer = await extender.filter(waiting(call), sent)

    check(call, network)
    assert answer == ([n.metadata.name for n in sent], {})


@recorded("prioritize")
async def test_prioritize(call: Call) -> None:
    extender, network = asked(call)
    answer = await extender.prioritize(waiting(call), nodes(call))

    check(call, network)
    assert answer == {"node-a": 1, "node-b": 10}


@recorded("preempt")
async def test_preempt(call: Call) -> None:
    extender, network = asked(call)
    cache, candidates = Cache(), []
    whole = call.request["NodeNameToVictims"]
    for name, victims in (whole or call.request["NodeNameToMetaVictims"]).items():
        cache.add_node(node(name))
        found = [
            decode_pod(msgspec.json.encode(victim)) if whole else pod("v", uid=victim["UID"])
            for victim in victims["Pods"]
        ]
        infos = tuple(PodInfo(victim, node_name=name) for victim in found)
        row = cache.table.row_of[name]
        candidates.append(Candidate(row, name, infos, victims["NumPDBViolations"]))
    answer = await extender.preempt(waiting(call), candidates, cache.table)

    check(call, network)
    assert answer == candidates


@recorded("bind")
async def test_bind(call: Call) -> None:
    extender, network = asked(call)
    request = call.request
    bound = pod(request["PodName"], ns=request["PodNamespace"], uid=request["PodUID"])
    await extender.bind(PodInfo(bound), request["Node"])

    check(call, network)
