"""Questions as nobody should ask them: each is answered, or refused with a reason."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.service.extender_server import wire
from berth.service.extender_server.candidate_nodes import MORE
from tests.builders import node, pod
from tests.service.extender_server.world import World, obj

POD: dict[str, Any] = obj(pod(cpu=1))
VERBS = ("filter", "prioritize", "preempt", "bind")
DEEP = b"[" * 20_000 + b"]" * 20_000
NAMED = b'"Pod":{"metadata":{"name":"p"}}'
IN = "requiredDuringSchedulingIgnoredDuringExecution"


async def ask(world: World, verb: str, body: bytes) -> str:
    """Return what is wrong with *body*, "" if it is answered."""
    profile = next(iter(world.answers.profiles.values()))
    try:
        if verb == "bind":
            await world.answers.bind(profile, body, gone=asyncio.Future())
        else:
            await getattr(world.answers, verb)(profile, body)
    except wire.ExtenderArgsError as exc:
        return str(exc)
    return ""


@pytest.fixture
def world() -> World:
    made = World()
    made.harness.put(node("n1", cpu=1))
    return made


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"x":%s}' % DEEP, id="deep where nobody looks"),
        pytest.param(b'{"Pod":%s,"NodeNames":[],"NodeNameToVictims":{}}' % DEEP, id="a deep pod"),
        pytest.param(b'{%s,"NodeNames":%s}' % (NAMED, DEEP), id="deep names"),
        pytest.param(b'{%s,"Nodes":{"items":[%s]}}' % (NAMED, DEEP), id="a deep node"),
        pytest.param(b'{%s,"NodeNameToVictims":{"n":%s}}' % (NAMED, DEEP), id="deep victims"),
        pytest.param(b'{"\xff":1}', id="a name that is no text"),
        pytest.param(
            b'{"Pod":{"metadata":{"name":"\xff"}},"NodeNames":[],"NodeNameToMetaVictims":{}}',
            id="a pod whose name is no text",
        ),
        pytest.param(
            b'{"Pod":{"metadata":{"name":"p","generation":%s}},"NodeNames":[]}' % (b"9" * 5_000),
            id="a number of 5,000 digits",
        ),
    ],
)
async def test_what_cannot_be_read_is_refused(world: World, verb: str, body: bytes) -> None:
    assert await ask(world, verb, body) != ""


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"priority": 10**18}, id="priority"),
        pytest.param({"tolerations": [{"operator": "Sometimes"}]}, id="toleration"),
        pytest.param({"containers": [{"ports": [{"hostPort": 2**62, "hostIP": "\0"}]}]}, id="port"),
        pytest.param(
            {"affinity": {"nodeAffinity": {IN: {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "a", "operator": "Gt", "values": ["9" * 5_000]}]}]}}}},
            id="a number of 5,000 digits",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {IN: [{"topologyKey": "k", "labelSelector": {
                "matchExpressions": [{"key": "!!", "operator": "In"}]}}]}}},
            id="selector",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": 2**63 - 1, "topologyKey": "zone"}]},
            id="skew",
        ),
    ],
)  # fmt: skip
async def test_a_nonsensical_pod_is_evaluated(world: World, spec: dict[str, Any]) -> None:
    asked = {"Pod": {**POD, "spec": {**POD["spec"], **spec}}, "NodeNames": ["n1"]}
    for verb in ("filter", "prioritize"):
        assert await ask(world, verb, json.dumps(asked).encode()) == ""


async def test_a_question_is_about_nodes_that_there_may_be(world: World) -> None:
    most = MORE + 2
    names = [f"node-{i}" for i in range(most)]
    assert await ask(world, "filter", json.dumps({"Pod": POD, "NodeNames": names}).encode()) == ""
    too_many = [*names, "more"]
    items = [{"metadata": {"name": name}} for name in too_many]
    victims: dict[str, Any] = {name: {"Pods": []} for name in too_many}
    for verb, asked, says in (
        ("filter", {"NodeNames": too_many}, f"NodeNames: more than {most} nodes"),
        ("filter", {"NodeNames": ["x" * 300 * most]}, f"NodeNames: more than {most} nodes"),
        ("filter", {"Nodes": {"items": items}}, f"Nodes.items: more than {most} nodes"),
        ("preempt", {"NodeNameToMetaVictims": victims}, f"victims on more than {most} nodes"),
    ):
        assert await ask(world, verb, json.dumps({"Pod": POD, **asked}).encode()) == says


async def test_a_pod_is_no_larger_than_there_can_be(world: World) -> None:
    large = {**POD, "metadata": {"name": "p", "annotations": {"x": "x" * 3 * 2**20}}}
    asked = json.dumps({"Pod": large, "NodeNames": []}).encode()
    assert await ask(world, "filter", asked) == "Pod: larger than 3145728 bytes"


@pytest.mark.parametrize("name", ["../../nodes/n1", "a/b", "a?b", "a#b", "%2e%2e", "", "x" * 254])
@pytest.mark.parametrize("field", ["PodNamespace", "PodName", "Node"])
async def test_a_name_never_leads_elsewhere(world: World, field: str, name: str) -> None:
    """Names of questions become parts of paths on the API server, where we may do more."""
    asked = {"PodNamespace": "n", "PodName": "p", "PodUID": "u", "Node": "n1", field: name}
    assert (await ask(world, "bind", json.dumps(asked).encode())).startswith(field)
    assert world.api.requests == []


FIELDS = st.text(max_size=9) | st.sampled_from(
    ["Pod", "Nodes", "NodeNames", "items", "metadata", "name", "uid", "spec", "containers",
     "Pods", "NodeNameToVictims", "NodeNameToMetaVictims", "PodName", "Node"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=12,
)
BODIES = JSON.map(lambda value: json.dumps(value).encode())
ABOUT_A_POD = st.dictionaries(FIELDS, JSON, max_size=4).map(
    lambda fields: json.dumps({**fields, "Pod": POD, "NodeNames": ["n1"]}).encode()
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES | ABOUT_A_POD | st.binary(max_size=50))
async def test_whatever_is_asked_has_an_answer(world: World, body: bytes) -> None:
    for verb in VERBS:
        assert len(await ask(world, verb, body)) < 10_000
