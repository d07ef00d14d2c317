"""Strategic merge patch: what kubectl and the scheduler send."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.schemas import builtin
from berth.cluster.writes.patch import PatchError
from berth.cluster.writes.strategic_merge import MergeError, strategic_merge

POD, NODE = (builtin.schema(f"io.k8s.api.core.v1.{kind}") for kind in ("Pod", "Node"))
DEPLOYMENT = builtin.schema("io.k8s.api.apps.v1.Deployment")

A, B, C = ({"name": name, "image": name} for name in "abc")


def containers(*items: Any, **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(items), **more}}


@pytest.mark.parametrize(
    ("document", "patch", "want"),
    [
        pytest.param(
            containers(A, B),
            containers({"name": "b", "image": "new"}),
            containers(A, {"name": "b", "image": "new"}),
            id="an element is found by its key",
        ),
        pytest.param(containers(A), containers(B), containers(B, A), id="a new one comes first"),
        pytest.param(
            {}, {"data": {"$patch": "bogus", "z": 1}}, {}, id="a directive for what is not there"
        ),
        pytest.param(
            {},
            containers({"image": "x"}),
            containers({"image": "x"}),
            id="a new list is taken without a look at its keys",
        ),
        pytest.param(
            containers(A, B),
            containers({"name": "a", "$patch": "delete"}),
            containers(B),
            id="$patch: delete takes one out",
        ),
        pytest.param(
            {"spec": {}},
            containers({"name": "a", "$patch": "delete"}, B),
            containers(B),
            id="$patch: delete takes nothing out of what is not there",
        ),
        pytest.param(
            containers(A, B),
            containers({"$patch": "replace"}, C),
            containers(C),
            id="$patch: replace takes the list as it is",
        ),
        pytest.param(
            containers(A, B),
            containers(C, **{"$setElementOrder/containers": [{"name": n} for n in "cba"]}),
            containers(C, B, A),
            id="$setElementOrder orders",
        ),
        pytest.param(
            containers(A, B, C),
            containers(**{"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
            containers(B, C, A),
            id="what the client does not know of keeps its place before its successor",
        ),
        pytest.param(
            containers({"name": "a", "env": [{"name": "X", "value": "1"}]}),
            containers({"name": "a", "env": [{"name": "Y", "value": "2"}]}),
            containers(
                {"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}
            ),
            id="lists inside elements merge by their own key",
        ),
        pytest.param(
            containers({"name": "a", "command": ["x"]}),
            containers({"name": "a", "command": ["y"]}),
            containers({"name": "a", "command": ["y"]}),
            id="lists without a key are replaced",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            id="tolerations are replaced",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c", "b"]}},
            {"metadata": {"finalizers": ["c", "b"]}},
            id="finalizers are a set",
        ),
        pytest.param(
            {"metadata": {"name": "p"}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"name": "p"}},
            id="nothing is taken out of a list that is not there",
        ),
        pytest.param(
            containers(A, nodeName="n"),
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": None}},
            {"spec": {"nodeName": "n"}},
            id="null removes a list, whatever its order",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"a": None, "b": "2"}}},
            {"metadata": {"labels": {"b": "2"}}},
            id="null removes",
        ),
        pytest.param(
            {},
            {"spec": {"a": None, "b": {"c": None}}},
            {"spec": {"b": {}}},
            id="nulls are not kept",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}}},
            {"spec": {"nodeSelector": {"b": "2"}}},
            id="$patch: replace takes an object as it is",
        ),
        pytest.param(
            {"spec": {"affinity": {"x": 1}, "nodeName": "n"}},
            {"spec": {"affinity": {"$patch": "delete"}}},
            {"spec": {"nodeName": "n"}},
            id="$patch: delete removes an object",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {
                "spec": {
                    "volumes": [
                        {
                            "name": "v",
                            "$retainKeys": ["name", "hostPath"],
                            "hostPath": {"path": "/x"},
                        }
                    ]
                }
            },
            {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}},
            id="$retainKeys drops the other member of a union",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}},
            {
                "status": {
                    "$setElementOrder/conditions": [
                        {"type": "PodScheduled"},
                        {"type": "DisruptionTarget"},
                    ],
                    "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                }
            },
            {
                "status": {
                    "conditions": [
                        {"type": "PodScheduled", "status": "True"},
                        {"type": "DisruptionTarget", "status": "True"},
                    ]
                }
            },
            id="the scheduler adds a condition",
        ),
    ],
)
def test_pods(document: Any, patch: Any, want: Any) -> None:
    before = repr(document)
    assert strategic_merge(document, patch, POD) == want
    assert repr(document) == before


@pytest.mark.parametrize(
    ("taints", "patch", "want"),
    [
        pytest.param([], [{"key": "k"}], {"taints": [{"key": "k"}]}, id="kubectl taint"),
        pytest.param([{"key": "a"}], [{"key": "b"}], {"taints": [{"key": "b"}]}, id="no merging"),
        pytest.param([{"key": "a"}], None, {}, id="the last one is taken away"),
    ],
)
def test_taints_are_replaced(taints: Any, patch: Any, want: Any) -> None:
    patched = strategic_merge({"spec": {"taints": taints}}, {"spec": {"taints": patch}}, NODE)
    assert patched == {"spec": want}


def test_templates_of_workloads_merge_like_pods() -> None:
    patch = {"spec": {"template": containers({"name": "b", "image": "new"})}}
    patched = strategic_merge({"spec": {"template": containers(A, B)}}, patch, DEPLOYMENT)
    assert patched["spec"]["template"] == containers(A, {"name": "b", "image": "new"})


@pytest.mark.parametrize(
    ("patch", "error"),
    [
        pytest.param([], PatchError, id="not an object"),
        pytest.param({"$patch": "twist"}, MergeError, id="an unknown directive"),
        pytest.param(containers("a"), PatchError, id="an element that is no object"),
        pytest.param(containers({"image": "x"}), MergeError, id="no merge key"),
        pytest.param({"$retainKeys": ["a"], "b": 1}, PatchError, id="more than it retains"),
        pytest.param({"$setElementOrder/spec": 1}, PatchError, id="an order that is no list"),
    ],
)
def test_bad_patches(patch: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        strategic_merge(containers(A), patch, POD)


def test_long_lists_are_merged_in_one_go() -> None:
    """What is compared is counted: twice as much list is twice as much work."""

    class Name(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    def comparisons(length: int) -> int:
        Name.compared = 0
        names = [Name(f"c{number}") for number in range(length)]
        before = containers(*({"name": name} for name in reversed(names)))
        order = {"$setElementOrder/containers": [{"name": name} for name in names]}
        patch = containers(*({"name": name, "image": "x"} for name in names), **order)
        merged = strategic_merge(before, patch, POD)
        assert [container["name"] for container in merged["spec"]["containers"]] == names
        return Name.compared

    assert comparisons(400) <= 3 * comparisons(200) + 1000


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=5))
def test_new_elements_come_in_the_order_of_the_patch(items: list[tuple[str, str]]) -> None:
    said = [{"name": name, "image": image} for name, image in items]
    order = {"$setElementOrder/containers": [{"name": name} for name, _ in items]}
    plain = strategic_merge({}, containers(*said, **order), POD)
    assert strategic_merge({}, containers(*said), POD) == plain


def test_long_sets_are_merged_in_one_go() -> None:
    def finalizers(*numbers: range) -> list[str]:
        return [f"a.b/{number}" for each in numbers for number in each]

    before = {"metadata": {"finalizers": finalizers(range(20_000))}}
    patch = {
        "metadata": {
            "finalizers": finalizers(range(10_000, 30_000)),
            "$deleteFromPrimitiveList/finalizers": finalizers(range(10_000)),
        }
    }
    merged = strategic_merge(before, patch, POD)
    assert merged["metadata"]["finalizers"] == finalizers(range(10_000, 30_000))


NAMES = st.sampled_from("abcdef")
ELEMENTS = st.lists(NAMES, unique=True, max_size=5)


def interleaved(others: list[str], spoken_of: list[str], server: list[str]) -> list[str]:
    """Merge two lists without common members, as documented for the API server.

    Of two elements that the server knew, the one that it had before the other goes first; else the
    one that the client speaks of.
    """
    if not others or not spoken_of:
        return others + spoken_of
    left, right = others[0], spoken_of[0]
    if right in server and server.index(left) < server.index(right):
        return [left, *interleaved(others[1:], spoken_of, server)]
    return [right, *interleaved(others, spoken_of[1:], server)]


def oracle(server: list[str], patch: list[str], gone: list[str], order: list[str] | None) -> Any:
    """Return the names in the merged list, by the definition and in no hurry."""
    there = [name for name in {*server, *patch} if name not in gone]
    wanted = patch if order is None else order
    spoken_of = sorted((name for name in there if name in wanted), key=wanted.index)
    others = sorted((name for name in there if name not in wanted), key=server.index)
    return interleaved(others, spoken_of, server)


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[str], list[str], list[str], list[str] | None]:
    """What the server has; what a patch sets, takes away, and in which order it wants it."""
    server, patch = draw(ELEMENTS), draw(ELEMENTS)
    gone = [name for name in draw(ELEMENTS) if name not in patch]
    if not draw(st.booleans()):
        return server, patch, gone, None
    more = [name for name in draw(ELEMENTS) if name not in patch and name not in gone]
    return server, patch, gone, draw(st.permutations([*patch, *more]))


@given(changes())
def test_elements_are_ordered_as_on_a_real_server(
    change: tuple[list[str], list[str], list[str], list[str] | None],
) -> None:
    server, patch, gone, order = change
    before = containers(*({"name": name, "image": "old"} for name in server))
    elements = [{"name": name, "image": "new"} for name in patch]
    elements += [{"name": name, "$patch": "delete"} for name in gone]
    directive = {} if order is None else {ORDER: [{"name": name} for name in order]}
    merged = strategic_merge(before, containers(*elements, **directive), POD)
    got = [(container["name"], container["image"]) for container in merged["spec"]["containers"]]
    want = oracle(server, patch, gone, order)
    assert got == [(name, "new" if name in patch else "old") for name in want]


ORDER = "$setElementOrder/containers"


@given(changes())
def test_values_of_sets_are_ordered_as_on_a_real_server(
    change: tuple[list[str], list[str], list[str], list[str] | None],
) -> None:
    server, patch, gone, order = change
    body: Any = {"finalizers": patch, "$deleteFromPrimitiveList/finalizers": gone}
    if order is not None:
        body["$setElementOrder/finalizers"] = order
    merged = strategic_merge({"metadata": {"finalizers": server}}, {"metadata": body}, POD)
    assert merged["metadata"]["finalizers"] == oracle(server, patch, gone, order)
