"""What a pod demands of its node: nodeSelector and required node affinity (spec §5.6)."""

import pytest

from berth.kube.objects.pod import NodeSelectorTerm, Pod
from berth.kube.objects.selectors import (
    CompiledTerm,
    NodeSelectorMatcher,
    Operator,
    RequiredNodeAffinity,
    Requirement,
    compile_node_selector_term,
    required_node_affinity,
    selector_from_map,
)
from tests.builders import node_affinity, pod, requirement, term

LABELS = {"zone": "a", "cpus": "8"}


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param(term(), None, id="an empty term is left out"),
        pytest.param(term(requirement("zone", "In", "a", "b")), True, id="labels match"),
        pytest.param(term(requirement("zone", "NotIn", "a")), False, id="labels do not match"),
        pytest.param(
            term(requirement("zone", "Exists"), requirement("cpus", "Gt", "8")),
            False,
            id="all expressions must hold",
        ),
        pytest.param(
            term(fields=[requirement("metadata.name", "In", "n1")]), True, id="the node is named"
        ),
        pytest.param(
            term(fields=[requirement("metadata.name", "NotIn", "n1")]),
            False,
            id="the node is excluded by name",
        ),
        pytest.param(
            term(requirement("cpus", "Lt", "8"), fields=[requirement("metadata.name", "In", "n1")]),
            False,
            id="expressions and fields must hold",
        ),
    ],
)
def test_term(written: NodeSelectorTerm, want: bool | None) -> None:
    compiled = compile_node_selector_term(written)
    assert (compiled and compiled.matches(LABELS, "n1")) is want


NAME = "metadata.name"


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (term(requirement("zone", "Near", "a")), "operator 'Near' of 'zone': unknown"),
        (term(requirement("zone", "NotIn")), "values of 'zone': NotIn needs at least one"),
        (
            term(requirement("zone", "Exists", "a")),
            "values of 'zone': Exists takes none, got ['a']",
        ),
        (term(requirement("cpus", "Gt", "1", "2")), "values of 'cpus': Gt needs one integer"),
        (term(requirement("cpus", "Gt", "few")), "values of 'cpus': Gt needs one integer"),
        (term(requirement("cpus", "Gt", "-1")), "values of 'cpus': '-1' is not a label value"),
        (term(requirement("zone", "NotIn", "b!")), "values of 'zone': 'b!' is not a label value"),
        (term(requirement("a/b/c", "DoesNotExist")), "key 'a/b/c': not a label key"),
        (
            term(fields=[requirement("spec.podCIDR", "NotIn", "x")]),
            "field 'spec.podCIDR': only metadata.name can be selected by",
        ),
        (
            term(fields=[requirement(NAME, "NotIn", "x", "y")]),
            "field metadata.name: want In or NotIn with one value",
        ),
        (
            term(fields=[requirement(NAME, "Exists")]),
            "field metadata.name: want In or NotIn with one value",
        ),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_wrong_term_matches_nothing(written: NodeSelectorTerm, error: str) -> None:
    compiled = compile_node_selector_term(written)
    assert compiled == CompiledTerm(error=error)
    assert not compiled.matches(LABELS, "n1")


ZONE_A, ZONE_B = term(requirement("zone", "In", "a")), term(requirement("zone", "In", "b"))
WRONG = term(requirement("zone", "In"))


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), None, id="nothing demanded"),
        pytest.param(pod(node_selector={}), None, id="an empty nodeSelector demands nothing"),
        pytest.param(
            pod(affinity=node_affinity(preferred=[(1, ZONE_B)])), None, id="only preferences"
        ),
        pytest.param(pod(node_selector={"zone": "a"}), True, id="nodeSelector matches"),
        pytest.param(
            pod(node_selector={"zone": "a", "gpu": ""}), False, id="an absent label is not empty"
        ),
        pytest.param(pod(node_selector={"zone": "-"}), False, id="nodeSelector is not checked"),
        pytest.param(
            pod(affinity=node_affinity(required=[ZONE_B, ZONE_A])), True, id="any term will do"
        ),
        pytest.param(
            pod(affinity=node_affinity(required=[WRONG, ZONE_A])),
            True,
            id="other terms count beside a wrong one",
        ),
        pytest.param(
            pod(affinity=node_affinity(required=[term()])), False, id="only empty terms: no node"
        ),
        pytest.param(pod(affinity=node_affinity(required=[])), False, id="no terms: no node"),
        pytest.param(
            pod(node_selector={"zone": "a"}, affinity=node_affinity(required=[ZONE_B])),
            False,
            id="both must hold",
        ),
    ],
)
def test_required_node_affinity(a_pod: Pod, want: bool | None) -> None:
    required = required_node_affinity(a_pod.spec)
    assert (required and required.matches(LABELS, "n1")) is want


def test_columns_can_take_the_requirements_apart() -> None:
    written = term(requirement("zone", "In", "a"), fields=[requirement(NAME, "NotIn", "n2")])
    a_pod = pod(node_selector={"disk": "ssd"}, affinity=node_affinity(required=[written, term()]))
    assert required_node_affinity(a_pod.spec) == RequiredNodeAffinity(
        selector=selector_from_map({"disk": "ssd"}),
        affinity=NodeSelectorMatcher(
            (
                CompiledTerm(
                    labels=(Requirement("zone", Operator.IN, ("a",)),),
                    fields=(Requirement(NAME, Operator.NOT_IN, ("n2",)),),
                ),
            )
        ),
    )
