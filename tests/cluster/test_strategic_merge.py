"""Strategic merge patch: what kubectl and the scheduler send."""

from typing import Any

import pytest

from berth.cluster.patch import PatchError, PatchMismatchError
from berth.cluster.strategic_merge import strategic_merge

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
        pytest.param(containers(A), containers(B), containers(A, B), id="a new one is appended"),
        pytest.param(
            containers(A, B),
            containers({"name": "a", "$patch": "delete"}),
            containers(B),
            id="$patch: delete takes one out",
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
                {"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}
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
            {"metadata": {"finalizers": ["b", "c"]}},
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
    assert strategic_merge(document, patch, "V1Pod") == want
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
    patched = strategic_merge({"spec": {"taints": taints}}, {"spec": {"taints": patch}}, "V1Node")
    assert patched == {"spec": want}


def test_templates_of_workloads_merge_like_pods() -> None:
    patch = {"spec": {"template": containers({"name": "b", "image": "new"})}}
    patched = strategic_merge({"spec": {"template": containers(A, B)}}, patch, "V1Deployment")
    assert patched["spec"]["template"] == containers(A, {"name": "b", "image": "new"})


@pytest.mark.parametrize(
    ("patch", "error"),
    [
        pytest.param([], PatchError, id="not an object"),
        pytest.param({"$patch": "twist"}, PatchError, id="an unknown directive"),
        pytest.param(containers("a"), PatchError, id="an element that is no object"),
        pytest.param(containers({"image": "x"}), PatchMismatchError, id="no merge key"),
        pytest.param({"$retainKeys": ["a"], "b": 1}, PatchError, id="more than it retains"),
        pytest.param({"$setElementOrder/spec": 1}, PatchError, id="an order that is no list"),
    ],
)
def test_bad_patches(patch: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        strategic_merge(containers(A), patch, "V1Pod")


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
        merged = strategic_merge(before, patch, "V1Pod")
        assert [each["name"] for each in merged["spec"]["containers"]] == names
        return Name.compared

    assert comparisons(400) <= 3 * comparisons(200) + 1000


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
    merged = strategic_merge(before, patch, "V1Pod")
    assert merged["metadata"]["finalizers"] == finalizers(range(10_000, 30_000))
