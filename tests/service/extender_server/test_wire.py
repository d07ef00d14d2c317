"""How questions are read: names in any case, nulls, and what is wrong with those that cannot be."""

from collections.abc import Callable
from typing import Any

import pytest

from berth.service.extender_server import wire

POD = b'"Pod":{"metadata":{"name":"p","uid":"u"}}'


@pytest.mark.parametrize(
    ("body", "names"),
    [
        pytest.param(b'{%s,"Nodes":null,"NodeNames":["a"]}' % POD, ["a"], id="as Go writes it"),
        pytest.param(b'{%s,"nodenames":["a"]}' % POD, ["a"], id="small letters"),
        pytest.param(b'{%s,"NODENAMES":["a"]}' % POD, ["a"], id="capitals"),
        pytest.param(b'{%s,"NodeNames":["a"],"More":[{}]}' % POD, ["a"], id="unknown fields"),
        pytest.param(b' { %s , "NodeNames" : [ ] } ' % POD, [], id="with spaces, no nodes"),
    ],
)
def test_questions_by_name(body: bytes, names: list[str]) -> None:
    args = wire.read_args(body)

    assert (args.pod.metadata.name, args.nodes) == ("p", None)
    assert args.node_names is not None
    assert wire.read_names(args.node_names, most=9) == names


@pytest.mark.parametrize("items", [b"[]", b"null", b'[{"a": 1},{}]'])
def test_whole_nodes_are_left_as_they_are(items: bytes) -> None:
    args = wire.read_args(b'{%s,"nodes":{"Items":%s}}' % (POD, items))

    want = {b"[]": [], b"null": [], b'[{"a": 1},{}]': [b'{"a": 1}', b"{}"]}[items]
    assert args.nodes is not None
    assert [bytes(node) for node in args.nodes] == want


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            b'{%s,"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"uid":"v"}}]}}}', id="whole"
        ),
        pytest.param(b'{%s,"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"v"}]}}}', id="uids"),
        pytest.param(b'{%s,"nodenametometavictims":{"n":{"pods":[{"uid":"v"}]}}}', id="small"),
        pytest.param(
            b'{%s,"NodeNameToVictims":null,"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"v"}]}}}',
            id="null beside",
        ),
    ],
)  # fmt: skip
def test_victims(body: bytes) -> None:
    assert wire.read_preemption_args(body % POD).victims == {"n": ["v"]}


def test_bindings() -> None:
    body = b'{"PodName":"p","podNamespace":"ns","PODUID":"u","Node":"n"}'

    assert wire.read_binding_args(body) == wire.ExtenderBindingArgs("ns", "p", "u", "n")


@pytest.mark.parametrize(
    ("read", "body", "why"),
    [
        pytest.param(
            wire.read_args, b"", "body: Input data was truncated", id="nothing"
        ),
        pytest.param(
            wire.read_args, b'{"Pod":{},}',
            "body: JSON is malformed: trailing comma in object (byte 10)", id="no JSON",
        ),
        pytest.param(
            wire.read_args, b"[]", "body: Expected `object | null`, got `array`", id="a list"
        ),
        pytest.param(wire.read_args, b"null", "neither Nodes nor NodeNames is given", id="0"),
        pytest.param(wire.read_args, b'{"NodeNames":[]}', "Pod is missing", id="no pod"),
        pytest.param(
            wire.read_args, b'{"Pod":{},"NodeNames":[]}', "Pod.metadata.name is missing",
            id="a pod without name",
        ),
        pytest.param(
            wire.read_args, b'{%s}' % POD, "neither Nodes nor NodeNames is given", id="no nodes"
        ),
        pytest.param(
            wire.read_args, b'{"Pod":{"spec":{"containers":3}},"NodeNames":[]}',
            "Pod: Expected `array`, got `int` - at `$.spec.containers`", id="a pod of odd shape",
        ),
        pytest.param(
            wire.read_args, b'{%s,"Nodes":[]}' % POD,
            "Nodes: Expected `object | null`, got `array`", id="nodes of odd shape",
        ),
        pytest.param(
            wire.read_args, b'{%s,"Nodes":{"items":{}}}' % POD,
            "Nodes.items: Expected `array`, got `object`", id="items of odd shape",
        ),
        pytest.param(
            wire.read_preemption_args, b'{%s}' % POD,
            "neither NodeNameToVictims nor NodeNameToMetaVictims is given", id="no victims",
        ),
        pytest.param(
            wire.read_preemption_args,
            b'{%s,"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"v"},{}]}}}' % POD,
            "NodeNameToMetaVictims['n'].Pods[1] has no uid", id="a victim without uid",
        ),
        pytest.param(
            wire.read_binding_args, b'{"PodName":"p","PodNamespace":"ns","PodUID":"u"}',
            "Node is missing", id="no node",
        ),
        pytest.param(
            wire.read_binding_args, b'{"PodNamespace":7}',
            "PodNamespace: Expected `str`, got `int`", id="a name of odd shape",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(read: Callable[[bytes], Any], body: bytes, why: str) -> None:
    with pytest.raises(wire.ExtenderArgsError) as caught:
        read(body)

    assert str(caught.value) == why


def test_names_that_are_none() -> None:
    with pytest.raises(wire.ExtenderArgsError, match=r"^NodeNames: Expected `str`, got `int`"):
        wire.read_names(b'["a", 1]', most=9)
