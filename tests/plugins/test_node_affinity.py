"""NodeAffinity: narrowing, filter, score, args and hint."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Affinity, NodeSelectorRequirement, NodeSelectorTerm, Pod
from berth.kube.objects.selectors import required_node_affinity
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import QueueingHint
from berth.scheduler.framework.interface import PreFilterResult
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Code, Status
from berth.scheduler.queue.rejected_pods import RejectedPods
from berth_plugins.node_affinity import (
    NOT_MATCHING,
    NOT_MATCHING_ADDED,
    TERMS_CONFLICT,
    NodeAffinity,
    NodeAffinityArgs,
)
from tests.builders import node, node_affinity, pod, requirement, term
from tests.plugins.evaluating import final_scores, raw_scores, rejected, table, verdicts

SSD = term(requirement("disk", "In", "ssd"))
FAST = term(requirement("disk", "In", "ssd", "nvme"))
BROKEN = term(requirement("disk", "Gt", "many"))
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def names(*values: str) -> NodeSelectorRequirement:
    return requirement("metadata.name", "In", *values)


def with_added(affinity: dict[str, object]) -> NodeAffinity:
    args = NodeAffinityArgs.model_validate_json(json.dumps({"addedAffinity": affinity}))
    return NodeAffinity(args)


def added_term(key: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def required(*terms: NodeSelectorTerm) -> Pod:
    return pod(affinity=node_affinity(required=terms))


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), SKIP, id="nothing is required"),
        pytest.param(pod(affinity=node_affinity(preferred=[(1, SSD)])), SKIP, id="only preferred"),
        pytest.param(pod(node_selector={"a": "b"}), None, id="a nodeSelector names no nodes"),
        pytest.param(required(SSD), None, id="no term names nodes"),
        pytest.param(required(), None, id="no terms at all"),
        pytest.param(required(term(fields=[names("n1")])), {"n1"}, id="one node"),
        pytest.param(
            required(term(fields=[names("n1")]), term(fields=[names("n2")])),
            {"n1", "n2"},
            id="terms add up",
        ),
        pytest.param(
            required(term(fields=[names("n1")]), SSD), None, id="every term must name nodes"
        ),
        pytest.param(
            required(term(fields=[names("n1"), names("n2")]), term(fields=[names("n3")])),
            {"n3"},
            id="within a term all must agree",
        ),
        pytest.param(
            required(term(fields=[names("n1"), names("n2")])), TERMS_CONFLICT, id="no node is left"
        ),
        pytest.param(
            required(term(fields=[requirement("metadata.name", "NotIn", "n1")])),
            None,
            id="NotIn does not narrow",
        ),
    ],
)
def test_pre_filter(a_pod: Pod, want: Status | set[str] | None) -> None:
    answer = NodeAffinity().pre_filter(CycleState(), PodInfo(a_pod), table())
    got = set(answer.node_names) if isinstance(answer, PreFilterResult) else answer
    assert got == want


def test_pre_filter_does_not_skip_when_the_profile_adds_affinity() -> None:
    plugin = with_added({REQUIRED: {"nodeSelectorTerms": [added_term("disk", "ssd")]}})
    assert plugin.pre_filter(CycleState(), PodInfo(pod()), table()) is None


@pytest.mark.parametrize(
    ("a_pod", "fits"),
    [
        pytest.param(pod(), {"ssd", "nvme", "bare"}, id="nothing is required"),
        pytest.param(pod(node_selector={"disk": "ssd"}), {"ssd"}, id="nodeSelector"),
        pytest.param(pod(node_selector={"disk": "ssd", "gpu": "1"}), set(), id="all keys count"),
        pytest.param(required(FAST), {"ssd", "nvme"}, id="In"),
        pytest.param(
            required(term(requirement("disk", "NotIn", "ssd"))),
            {"nvme", "bare"},
            id="NotIn holds without the label",
        ),
        pytest.param(required(term(requirement("disk", "Exists"))), {"ssd", "nvme"}, id="Exists"),
        pytest.param(
            required(term(requirement("disk", "DoesNotExist"))), {"bare"}, id="DoesNotExist"
        ),
        pytest.param(required(term(requirement("cores", "Gt", "8"))), {"nvme"}, id="Gt"),
        pytest.param(required(term(requirement("cores", "Lt", "16"))), {"ssd"}, id="Lt"),
        pytest.param(
            required(term(requirement("disk", "Exists"), requirement("cores", "Gt", "8"))),
            {"nvme"},
            id="within a term all must hold",
        ),
        pytest.param(
            required(SSD, term(requirement("disk", "DoesNotExist"))),
            {"ssd", "bare"},
            id="any term will do",
        ),
        pytest.param(required(term(fields=[names("bare")])), {"bare"}, id="by name"),
        pytest.param(
            required(term(fields=[requirement("metadata.name", "NotIn", "bare")])),
            {"ssd", "nvme"},
            id="by name, negated",
        ),
        pytest.param(required(term(fields=[names("gone")])), set(), id="no node has the name"),
        pytest.param(required(BROKEN), set(), id="a broken term matches nothing"),
        pytest.param(required(BROKEN, SSD), {"ssd"}, id="other terms still count"),
        pytest.param(required(term()), set(), id="an empty term matches nothing"),
        pytest.param(required(), set(), id="without terms nothing matches"),
        pytest.param(
            pod(node_selector={"disk": "ssd"}, affinity=node_affinity(required=[term(names("x"))])),
            set(),
            id="selector and affinity must both hold",
        ),
    ],
)
def test_filter(a_pod: Pod, fits: set[str]) -> None:
    nodes = table(
        node("ssd", labels={"disk": "ssd", "cores": "8"}),
        node("nvme", labels={"disk": "nvme", "cores": "16"}),
        node("bare", labels={"cores": "many"}),
    )
    want = {name: None if name in fits else NOT_MATCHING for name in nodes.row_of}
    assert verdicts(NodeAffinity(), a_pod, nodes) == want


def test_what_the_profile_adds_is_evaluated_first() -> None:
    plugin = with_added({REQUIRED: {"nodeSelectorTerms": [added_term("pool", "a")]}})
    nodes = table(
        node("both", labels={"pool": "a", "disk": "ssd"}),
        node("added", labels={"pool": "a"}),
        node("own", labels={"disk": "ssd"}),
        node("none"),
    )
    assert verdicts(plugin, required(SSD), nodes) == {
        "both": None,
        "added": NOT_MATCHING,
        "own": NOT_MATCHING_ADDED,
        "none": NOT_MATCHING_ADDED,
    }
    assert rejected(plugin, pod(), nodes) == {"own", "none"}


operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
values = st.sampled_from(["a", "b", "3", "12"])


@st.composite
def requirements(draw: st.DrawFn) -> NodeSelectorRequirement:
    wanted = draw(st.lists(values, max_size=2))
    return requirement(draw(st.sampled_from(["k", "l"])), draw(operators), *wanted)


fields = st.builds(
    lambda operator, name: requirement("metadata.name", operator, name),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["n0", "n1", "gone"]),
)
terms = st.builds(
    lambda of_labels, of_fields: term(*of_labels, fields=of_fields),
    st.lists(requirements(), max_size=2),
    st.lists(fields, max_size=1),
)
labels = st.dictionaries(st.sampled_from(["k", "l"]), values)


@given(st.lists(labels, min_size=1, max_size=5), labels, st.none() | st.lists(terms, max_size=3))
def test_filter_follows_the_compiled_selector(
    of_nodes: list[dict[str, str]],
    selector: dict[str, str],
    of_pod: list[NodeSelectorTerm] | None,
) -> None:
    nodes = table(*[node(f"n{i}", labels=mine) for i, mine in enumerate(of_nodes)])
    a_pod = pod(node_selector=selector, affinity=node_affinity(required=of_pod))
    compiled = required_node_affinity(a_pod.spec)
    want = {
        f"n{i}"
        for i, mine in enumerate(of_nodes)
        if compiled is not None and not compiled.matches(mine, f"n{i}")
    }
    assert rejected(NodeAffinity(), a_pod, nodes) == want


def preferring(*preferred: tuple[int, NodeSelectorTerm]) -> Affinity:
    return node_affinity(preferred=preferred)


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), SKIP, id="no affinity"),
        pytest.param(required(SSD), SKIP, id="only required"),
        pytest.param(pod(affinity=preferring((0, BROKEN))), None, id="weighing nothing"),
        pytest.param(
            pod(affinity=preferring((1, BROKEN))),
            Code.ERROR,
            id="a preference that cannot be compiled",
        ),
    ],
)
def test_pre_score(a_pod: Pod, want: Status | Code | None) -> None:
    status = NodeAffinity().pre_score(CycleState(), PodInfo(a_pod), table())
    assert (status.code if isinstance(want, Code) and status else status) == want


def test_a_broken_preference_names_what_is_wrong() -> None:
    status = NodeAffinity().score(
        CycleState(), PodInfo(pod(affinity=preferring((1, BROKEN)))), table()
    )
    assert isinstance(status, Status)
    assert "disk" in status.message


def test_scores_are_sums_of_weights_stretched_to_100() -> None:
    nodes = table(
        node("ssd", labels={"disk": "ssd"}),
        node("nvme", labels={"disk": "nvme"}),
        node("none"),
        node("named", labels={"disk": "ssd"}),
    )
    a_pod = pod(
        affinity=preferring(
            (30, SSD), (20, FAST), (5, term(fields=[names("named")])), (9, term()), (0, FAST)
        )
    )
    plugin = NodeAffinity()
    assert raw_scores(plugin, a_pod, nodes) == {"ssd": 50, "nvme": 20, "none": 0, "named": 55}
    assert final_scores(plugin, a_pod, nodes) == {"ssd": 90, "nvme": 36, "none": 0, "named": 100}


def test_preferences_of_the_profile_count_for_every_pod() -> None:
    plugin = with_added({PREFERRED: [{"weight": 7, "preference": added_term("pool", "a")}]})
    nodes = table(node("a", labels={"pool": "a", "disk": "ssd"}), node("b", labels={"pool": "b"}))
    assert raw_scores(plugin, pod(), nodes) == {"a": 7, "b": 0}
    assert raw_scores(plugin, pod(affinity=preferring((2, SSD))), nodes) == {"a": 9, "b": 0}


def test_nobody_matches_a_preference() -> None:
    a_pod = pod(affinity=preferring((5, SSD)))
    assert final_scores(NodeAffinity(), a_pod, table(node("a"), node("b"))) == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            None, {"disk": "ssd", "pool": "a"}, QueueingHint.QUEUE, id="a node came that matches"
        ),
        pytest.param(None, {"disk": "ssd"}, QueueingHint.SKIP, id="not what the profile adds"),
        pytest.param(None, {"pool": "a"}, QueueingHint.SKIP, id="not what the pod requires"),
        pytest.param(
            {"pool": "a"}, {"disk": "ssd", "pool": "a"}, QueueingHint.QUEUE, id="it matches now"
        ),
        pytest.param(
            {"disk": "ssd"},
            {"disk": "ssd", "pool": "a"},
            QueueingHint.QUEUE,
            id="the added part came last",
        ),
        pytest.param(
            {"disk": "ssd", "pool": "a"},
            {"disk": "ssd", "pool": "a", "x": "y"},
            QueueingHint.SKIP,
            id="it matched before",
        ),
        pytest.param({"disk": "ssd", "pool": "a"}, {"pool": "a"}, QueueingHint.SKIP, id="no more"),
    ],
)
def test_node_hint(old: dict[str, str] | None, new: dict[str, str], want: QueueingHint) -> None:
    plugin = with_added({REQUIRED: {"nodeSelectorTerms": [added_term("pool", "a")]}})
    (registered,) = plugin.events_to_register()
    assert registered.hint is not None
    before: Node | None = None if old is None else node(labels=old)
    assert registered.hint(required(SSD), before, node(labels=new)) is want


OF_N1 = term(fields=[requirement("metadata.name", "In", "n1")])
NOT_OLD = term(requirement("old", "DoesNotExist"))
DISK = {"disk": "ssd"}


@pytest.mark.parametrize(
    ("waiting", "is_found"),
    [
        pytest.param(pod(), True, id="only the added affinity can have rejected it"),
        pytest.param(pod(node_selector=DISK), True, id="by its node selector"),
        pytest.param(pod(node_selector={"disk": "hdd"}), False, id="another value"),
        pytest.param(pod(node_selector=DISK | {"pool": "b"}), True, id="by one of two labels"),
        pytest.param(required(FAST), True, id="by one of the values"),
        pytest.param(required(OF_N1), True, id="by name"),
        pytest.param(required(term(requirement("pool", "In", "b"))), False, id="another label"),
        pytest.param(required(term(requirement("pool", "In", "b")), SSD), True, id="any term"),
        pytest.param(required(BROKEN), False, id="a wrong term matches nothing"),
        pytest.param(required(BROKEN, SSD), True, id="the term that is right"),
        pytest.param(required(NOT_OLD), True, id="what asks for no label"),
        pytest.param(required(NOT_OLD, OF_N1), True, id="one of two terms asks for no label"),
    ],
)
def test_waiting_pods_are_found_by_labels(waiting: Pod, *, is_found: bool) -> None:
    (registered,) = NodeAffinity().events_to_register()
    rejected: RejectedPods[str] = RejectedPods(("profile", "NodeAffinity"), registered.indexes)
    rejected.add("waiting", PodInfo(waiting))
    found = rejected.found_by(registered.indexes, None, node("n1", labels=DISK))
    assert [*found] == ["waiting"] * is_found


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        pytest.param(
            {REQUIRED: {"nodeSelectorTerms": [added_term("disk", "ssd"), added_term("a b", "x")]}},
            rf"addedAffinity\.{REQUIRED}\.nodeSelectorTerms\[1\]: key 'a b'",
            id="a required term",
        ),
        pytest.param(
            {PREFERRED: [{"weight": 1, "preference": added_term("disk")}]},
            rf"addedAffinity\.{PREFERRED}\[0\]\.preference: values of 'disk'",
            id="a preferred term",
        ),
        pytest.param({PREFERRED: "all"}, "addedAffinity: Expected `array`", id="the shape"),
    ],
)
def test_wrong_args_are_named(affinity: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        with_added(affinity)


def test_args_can_be_written_out_again() -> None:
    written = {REQUIRED: {"nodeSelectorTerms": [added_term("pool", "a")]}}
    args = NodeAffinityArgs.model_validate_json(json.dumps({"addedAffinity": written}))
    assert json.loads(args.model_dump_json(by_alias=True))["addedAffinity"] == written
    assert NodeAffinityArgs.model_validate_json('{"addedAffinity": null}').added_affinity is None
