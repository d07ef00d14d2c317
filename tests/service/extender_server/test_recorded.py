"""What kube-scheduler 1.36 asked an extender, asked of us: the answers have the recorded form.

What they say differs where the recorded extender had opinions of its own: it let everything pass
and always scored node-a 1 and node-b 10.
"""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from tests.service.extender_server.world import World

RECORDED = Path(__file__).parents[2] / "scheduler" / "extender" / "recorded"
FORMS = ("full-nodes", "node-names")


class Call(NamedTuple):
    form: str
    number: int
    verb: str
    request: dict[str, Any]
    response: Any


def calls(form: str) -> list[Call]:
    found = []
    for number, line in enumerate(
        (RECORDED / f"extender-{form}.jsonl").read_bytes().splitlines(), 1
    ):
        said = msgspec.json.decode(line)
        verb = said["path"].removeprefix("/scheduler/")
        found.append(Call(form, number, verb, said["request"], said["response"]))
    return found


def nodes() -> list[Node]:
    """Return the nodes of the cluster that was recorded."""
    first = calls("full-nodes")[0].request["Nodes"]["items"]
    return [msgspec.convert(each, Node) for each in first]


@pytest.mark.parametrize("form", FORMS)
async def test_the_whole_sequence(form: str) -> None:
    """Every pod is asked about, and bound where it was: then the next question is asked."""
    world = World()
    world.harness.put(*nodes())
    for call in calls(form):
        if call.verb == "bind":
            await bind(world, call)
        elif call.verb == "preempt":
            assert await world.ask("preempt", call.request) == call.response, call
        else:
            world.harness.put(msgspec.convert(call.request["Pod"], Pod))
            said = await world.ask(call.verb, call.request)
            check = filtered if call.verb == "filter" else prioritized
            check(said, call)
    assert world.harness.placements() == {"plain": "node-b", "low-a": "node-b", "low-b": "node-a"}


async def bind(world: World, call: Call) -> None:
    assert call.response == {"Error": ""}
    assert await world.ask("bind", call.request) == call.response


def filtered(said: dict[str, Any], call: Call) -> None:
    assert said.keys() >= call.response.keys()
    # kube-scheduler had filtered before, and its extender and we agree with it. What the extender
    # left out, we say: there is nothing in it.
    assert {key: said[key] for key in call.response} == call.response
    assert not any(said[key] for key in said.keys() - call.response.keys())


def prioritized(said: list[dict[str, Any]], call: Call) -> None:
    assert [each.keys() for each in said] == [each.keys() for each in call.response]
    assert [each["Host"] for each in said] == [each["Host"] for each in call.response]
    assert all(isinstance(each["Score"], int) and 0 <= each["Score"] <= 10 for each in said)


def test_both_forms_were_recorded_with_every_verb() -> None:
    for form in FORMS:
        assert {call.verb for call in calls(form)} == {"filter", "prioritize", "preempt", "bind"}
