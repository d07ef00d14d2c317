"""Existing volumes for claims, against the rule tried node by node and volume by volume."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.meta import LabelSelectorRequirement
from berth.kube.objects.node import Node
from berth.kube.objects.quantity import parse
from berth.kube.objects.selectors import compile_selector
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.scheduler.framework.assume_cache import AssumeCache
from berth.scheduler.framework.node_table import NodeTable
from berth_plugins.volume_binding.matching_volumes import VolumeMatching
from berth_plugins.volume_binding.node_affinity import node_affinity_of
from berth_plugins.volume_binding.pod_volumes import bound_to
from tests.builders import HOSTNAME, ZONE, node, requirement, selector, term
from tests.plugins.evaluating import table
from tests.volume_builders import claim, listers, reference, volume

NODES = [node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b")]

Found = dict[str, dict[str, str | None]]
"""Node to claim to volume."""


def matching(
    volumes: Sequence[PersistentVolume], assumed: Sequence[PersistentVolume] = ()
) -> VolumeMatching:
    lister = listers(*volumes).persistent_volumes
    cache = AssumeCache(lister)
    for obj in assumed:
        cache.assume(obj)
    return VolumeMatching(lister, cache)


def found(
    finder: VolumeMatching, claims: Sequence[PersistentVolumeClaim], nodes: NodeTable
) -> Found:
    matches = finder.find_matching_volumes(claims, nodes, nodes.exists)
    volumes = {
        name: {match.claim.metadata.name: match.volume(row) for match in matches}
        for name, row in nodes.row_of.items()
    }
    return {
        name: {key: None if v is None else v.metadata.name for key, v in of_node.items()}
        for name, of_node in volumes.items()
    }


def match_one(
    volumes: Sequence[PersistentVolume],
    wanted: PersistentVolumeClaim,
    assumed: Sequence[PersistentVolume] = (),
) -> dict[str, str | None]:
    answers = found(matching(volumes, assumed), [wanted], table(*NODES))
    return {name: of_node[wanted.metadata.name] for name, of_node in answers.items()}


def everywhere(name: str | None) -> dict[str, str | None]:
    return dict.fromkeys(("n1", "n2", "n3"), name)


@pytest.mark.parametrize(
    ("volumes", "wanted", "want"),
    [
        pytest.param([], claim(), everywhere(None), id="there are no volumes"),
        pytest.param([volume()], claim(), everywhere("pv"), id="one that every node can use"),
        pytest.param(
            [volume(hosts=["n1", "n3"])],
            claim(),
            {"n1": "pv", "n2": None, "n3": "pv"},
            id="one that some nodes can use",
        ),
        pytest.param(
            [
                volume(
                    reach=[
                        term(requirement(ZONE, "In", "b")),
                        term(requirement(HOSTNAME, "In", "n1", "n2"), requirement(ZONE, "Exists")),
                    ]
                )
            ],
            claim(),
            everywhere("pv"),
            id="any term will do",
        ),
        pytest.param([volume(reach=[])], claim(), everywhere(None), id="no term, no node"),
        pytest.param(
            [volume(reach=[term(fields=[requirement("metadata.name", "In", "n1")])])],
            claim(),
            everywhere(None),
            id="the node's name is not tried",
        ),
        pytest.param(
            [volume(reach=[term(fields=[requirement("metadata.name", "NotIn", "n1")])])],
            claim(),
            everywhere("pv"),
            id="and so is not the wrong one either",
        ),
        pytest.param(
            [volume("large", size="9Gi"), volume("small", size="2Gi")],
            claim(size="2Gi"),
            everywhere("small"),
            id="the smallest that is large enough",
        ),
        pytest.param(
            [volume("b"), volume("a")], claim(), everywhere("a"), id="of equal ones the first"
        ),
        pytest.param([volume(size="1Gi")], claim(size="1025Mi"), everywhere(None), id="too small"),
        pytest.param(
            [volume(size="1Gi")], claim(size=None), everywhere("pv"), id="no size is asked for"
        ),
        pytest.param([volume(storage_class="x")], claim(), everywhere(None), id="another class"),
        pytest.param(
            [volume()], claim(volume_mode="Block"), everywhere(None), id="another volume mode"
        ),
        pytest.param(
            [volume()],
            claim(volume_attributes_class_name="gold"),
            everywhere(None),
            id="other attributes",
        ),
        pytest.param(
            [volume(modes=["ReadWriteOnce", "ReadWriteMany"])],
            claim(modes=["ReadWriteMany"]),
            everywhere("pv"),
            id="more access modes than needed",
        ),
        pytest.param(
            [volume()],
            claim(modes=["ReadWriteOnce", "ReadWriteMany"]),
            everywhere(None),
            id="an access mode is missing",
        ),
        pytest.param(
            [volume("x", labels={"speed": "slow"}), volume("y", labels={"speed": "fast"})],
            claim(selector=selector({"speed": "fast"})),
            everywhere("y"),
            id="selected by label",
        ),
        pytest.param([volume(phase="Pending")], claim(), everywhere(None), id="not available yet"),
        pytest.param([volume(deleted="now")], claim(), everywhere(None), id="being deleted"),
        pytest.param(
            [volume(claim=claim("other"))], claim(), everywhere(None), id="somebody else's"
        ),
        pytest.param(
            [volume("mine", hosts=["n1"], claim=reference(claim(), uid="")), volume("free")],
            claim(),
            {"n1": "mine", "n2": None, "n3": None},
            id="a reserved volume is the only answer",
        ),
        pytest.param(
            [volume("mine", size="1Gi", claim=reference(claim(), uid="")), volume("free")],
            claim(size="2Gi"),
            everywhere("free"),
            id="unless it is too small",
        ),
        pytest.param(
            [volume("mine", claim=reference(claim()), phase="Available", modes=[])],
            claim(selector=selector({"no": "such"})),
            everywhere("mine"),
            id="a reserved volume is not asked for modes and labels",
        ),
    ],
)
def test_one_claim(
    volumes: list[PersistentVolume],
    wanted: PersistentVolumeClaim,
    want: Mapping[str, str | None],
) -> None:
    assert match_one(volumes, wanted) == want


def test_what_is_assumed_for_another_claim_is_gone() -> None:
    known = volume(hosts=["n1"])
    assumed = bound_to(known, claim("other"))
    assert match_one([known, volume("next", hosts=["n1"])], claim(), [assumed])["n1"] == "next"


def test_what_is_assumed_for_the_claim_is_its_own() -> None:
    known = volume("large", size="99Gi", hosts=["n1"])
    want = {"n1": "large", "n2": None, "n3": None}
    assert match_one([known, volume("free")], claim(), [bound_to(known, claim())]) == want


def test_the_smallest_claim_chooses_first() -> None:
    volumes = [volume("v1", size="1Gi"), volume("v5", size="5Gi", hosts=["n1", "n2"])]
    claims = [claim("large", size="2Gi"), claim("small", size="1Gi")]
    n1 = {"small": "v1", "large": "v5"}
    assert found(matching(volumes), claims, table(*NODES)) == {
        "n1": n1,
        "n2": n1,
        "n3": {"small": "v1", "large": None},
    }


def test_volumes_come_and_go() -> None:
    known = listers()
    finder = VolumeMatching(known.persistent_volumes, AssumeCache(known.persistent_volumes))
    nodes = table(node("n1"))

    def answer() -> str | None:
        return found(finder, [claim()], nodes)["n1"]["data"]

    assert answer() is None
    first = volume("a", size="5Gi")
    known.persistent_volumes.on_add(first)
    known.persistent_volumes.on_add(volume("b", size="6Gi"))
    assert answer() == "a"
    taken = bound_to(first, claim("other"))
    known.persistent_volumes.on_update(first, taken)
    assert answer() == "b"
    known.persistent_volumes.on_update(taken, volume("a", size="7Gi"))
    assert answer() == "b"
    known.persistent_volumes.on_delete(volume("b"))
    assert answer() == "a"


def test_a_selector_that_cannot_be_is_named() -> None:
    wrong = selector(expressions=[LabelSelectorRequirement("speed", "In", ())])
    with pytest.raises(ValueError, match="label selector for claim: default/data: values of"):
        match_one([volume()], claim(selector=wrong))


# Against the rule.

HOSTS = ["n1", "n2", "n3"]
SIZES = ["1Gi", "2Gi", "3Gi"]
CLAIM_NAMES = ["c1", "c2", "c3"]

a_reach = st.one_of(
    st.none(),
    st.lists(
        st.one_of(
            st.lists(st.sampled_from(HOSTS), min_size=1).map(
                lambda names: term(requirement(HOSTNAME, "In", *names))
            ),
            st.sampled_from(["a", "b"]).map(lambda zone: term(requirement(ZONE, "In", zone))),
            st.sampled_from(HOSTS).map(lambda name: term(requirement(HOSTNAME, "NotIn", name))),
        ),
        max_size=2,
    ),
)


@st.composite
def some_volumes(draw: st.DrawFn) -> list[PersistentVolume]:
    return [
        volume(
            f"v{i}",
            size=draw(st.sampled_from(SIZES)),
            reach=draw(a_reach),
            modes=draw(st.sampled_from([["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]])),
            labels=draw(st.sampled_from([{}, {"speed": "fast"}])),
            claim=draw(
                st.one_of(
                    st.none(),
                    st.none(),
                    st.sampled_from(CLAIM_NAMES).map(lambda name: reference(claim(name), uid="")),
                )
            ),
        )
        for i in range(draw(st.integers(0, 8)))
    ]


@st.composite
def some_claims(draw: st.DrawFn) -> list[PersistentVolumeClaim]:
    return [
        claim(
            name,
            size=draw(st.sampled_from(SIZES)),
            modes=draw(st.sampled_from([["ReadWriteOnce"], ["ReadWriteMany"]])),
            selector=draw(st.sampled_from([None, selector({"speed": "fast"})])),
        )
        for name in CLAIM_NAMES[: draw(st.integers(1, 3))]
    ]


def the_rule(
    volumes: Sequence[PersistentVolume], claims: Sequence[PersistentVolumeClaim], on: Node
) -> dict[str, str | None]:
    """Try, on one node, all volumes for each claim in order of size (spec §5.15)."""
    answer: dict[str, str | None] = {}
    for wanted in sorted(claims, key=lambda c: c.requested_size):
        best: PersistentVolume | None = None
        for offered in volumes:
            if offered.metadata.name in answer.values():
                continue
            if offered.spec.claim_ref is not None and not offered.is_bound_to(wanted):
                continue
            if parse(offered.spec.capacity["storage"]) < wanted.requested_size:
                continue
            usable = node_affinity_of(offered).matches(on.metadata.labels)
            if offered.is_bound_to(wanted):
                best = offered if usable else None
                break
            by_label = wanted.spec.selector is None or compile_selector(
                wanted.spec.selector
            ).matches(offered.metadata.labels)
            by_mode = set(wanted.spec.access_modes) <= set(offered.spec.access_modes)
            if usable and by_label and by_mode and (best is None or offered.size < best.size):
                best = offered
        answer[wanted.metadata.name] = best.metadata.name if best else None
    return answer


def in_trying_order(volumes: Sequence[PersistentVolume]) -> list[PersistentVolume]:
    """Of several volumes reserved for one claim the smallest counts; others do not depend on it."""
    return sorted(volumes, key=lambda v: (v.size, v.metadata.name))


@given(some_volumes(), some_claims())
def test_matching_follows_the_rule(
    volumes: list[PersistentVolume], claims: list[PersistentVolumeClaim]
) -> None:
    assert found(matching(volumes), claims, table(*NODES)) == {
        on.name: the_rule(in_trying_order(volumes), claims, on) for on in NODES
    }
