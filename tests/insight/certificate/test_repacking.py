"""How few nodes the pods of a cluster need, by the scheduler's own rules."""

from collections.abc import Callable
from typing import Any

import pytest

from berth.insight.certificate.certificate import COUNTING, SOLVER, Certificate, Number, lines
from berth.insight.certificate.problem import Limits, Problem, Solution, Stage, Status
from berth.insight.certificate.repacking import prove_repacking
from berth.insight.certificate.solver_process import NOT_INSTALLED, is_installed
from berth.insight.whatif.question import Question
from berth.kube.objects.devices import ExactDeviceRequest
from berth.kube.objects.meta import KubeStruct
from berth_plugins.registry import IN_TREE
from tests.builders import (
    HOSTNAME,
    ZONE,
    disruption_budget,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
    spread,
)
from tests.device_builders import (
    DRIVER,
    allocation,
    claim,
    device,
    device_class,
    exactly,
    resource_slice,
    with_template_claim,
)
from tests.insight.whatif.asking import snapshot

pytestmark = pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed")
WEB = {"app": "web"}
NODES = tuple(node(f"n{i}", cpu="4", labels={ZONE: "abc"[i % 3]}) for i in range(6))


def proven(*objects: KubeStruct, **question: Any) -> Certificate:
    asked = Question(repack=True, **question)
    return prove_repacking(
        asked, snapshot(*objects), IN_TREE, Limits(seconds=20), find=find_in_this_process
    )


def find_in_this_process(
    problem: Problem, limits: Limits, _look: Callable[[], None] = lambda: None
) -> Solution:
    """Solve without a process for each problem: its start takes ten times as long."""
    from berth.insight.certificate.solver import solve

    return solve(problem, limits)


def web(count: int = 6, **more: Any) -> list[KubeStruct]:
    """Pods of one CPU, each on another node."""
    more = {"cpu": "1", "labels": WEB, "owner": "web", **more}
    return [pod(f"web-{i}", node=f"n{i}", **more) for i in range(count)]


@pytest.mark.parametrize(
    ("pods", "fewest"),
    [
        pytest.param(web(), 2, id="by requests"),
        pytest.param(
            web(affinity=pod_anti_affinity(required=[pod_term(WEB)])), 6, id="anti-affinity by node"
        ),
        pytest.param(
            [
                *web(3),
                pod(
                    "shy",
                    node="n3",
                    cpu="1",
                    owner="shy",
                    affinity=pod_anti_affinity(required=[pod_term(WEB, key=ZONE)]),
                ),
            ],
            2,
            id="anti-affinity to others by zone",
        ),
        pytest.param(web(spread=[spread(ZONE, selector=selector(WEB))]), 3, id="spread over zones"),
        pytest.param(
            web(spread=[spread(HOSTNAME, selector=selector(WEB))]), 6, id="spread over nodes"
        ),
        pytest.param(web(ports=[80]), 6, id="host ports"),
        pytest.param(web(node_selector={ZONE: "b"}, count=2), 1, id="a node selector"),
        pytest.param(
            [*web(3), pod("big", node="n3", cpu="2", owner="big"), pod("pet", node="n5", cpu="1")],
            2,
            id="pods without a controller move, too, as in a drain of --force",
        ),
        pytest.param(
            [*web(4), disruption_budget(selects=selector(WEB))],
            4,
            id="a budget that allows nothing keeps its pods where they are",
        ),
    ],
)
def test_the_fewest_nodes(pods: list[KubeStruct], fewest: int) -> None:
    certificate = proven(*NODES, *pods)
    [number] = certificate.numbers
    assert (number.value, number.bound, certificate.method) == (fewest, fewest, SOLVER), [
        *lines(certificate)
    ]


def with_devices(*wanted: ExactDeviceRequest, kinds: str = "ab") -> list[KubeStruct]:
    """Pods on nodes of their own, with a claim each; nodes have a device of each kind."""
    objects: list[KubeStruct] = [device_class()]
    for i, exact in enumerate(wanted):
        devices = [device(f"{kind}{j}", attributes={"kind": kind}) for j, kind in enumerate(kinds)]
        of_node = allocation(devices[0].name, pool=f"n{i}", node=f"n{i}")
        on_node = pod(f"p{i}", node=f"n{i}", cpu="1", owner="p")
        objects += [
            resource_slice(f"s{i}", *devices, node=f"n{i}"),
            with_template_claim(on_node, "devices", made=f"c{i}"),
            claim(f"c{i}", exact, owner=on_node.metadata.uid, allocated=of_node, users=["x"]),
        ]
    return objects


OF_KIND_A = exactly(where=[f'device.attributes["{DRIVER}"].kind == "a"'])


@pytest.mark.parametrize(
    ("objects", "fewest", "left_out"),
    [
        pytest.param(with_devices(*[exactly()] * 4), 2, 0, id="two devices on a node"),
        pytest.param(with_devices(*[exactly(count=2)] * 3), 3, 0, id="two devices for a pod"),
        pytest.param(with_devices(*[OF_KIND_A] * 3), 3, 0, id="one device of this kind on a node"),
        pytest.param(
            with_devices(OF_KIND_A, OF_KIND_A, *[exactly()] * 4, kinds="aba"),
            2,
            0,
            id="those for whom any will do leave those of this kind to the others",
        ),
        pytest.param(
            with_devices(*[exactly(None)] * 2), 2, 1, id="the model does not know mode All"
        ),
    ],
)
def test_devices(objects: list[KubeStruct], fewest: int, left_out: int) -> None:
    certificate = proven(*NODES, *objects)
    [number] = certificate.numbers
    assert (number.value, len(certificate.left_out)) == (fewest, left_out), [*lines(certificate)]
    assert number.is_proven or left_out


def test_moves_lead_to_the_plan() -> None:
    homes = {"x": "a", "y": "a", "z": "b"}
    pods = [pod(name, node=on, cpu="1", owner="web") for name, on in homes.items()]
    certificate = proven(node("a", cpu="4"), node("b", cpu="4"), *pods)
    [move] = certificate.moves
    assert (move.pod, move.source, move.target) == ("default/z", "b", "a")
    assert certificate.before == 2


def test_rules_that_the_model_leaves_out_are_told_and_tried() -> None:
    near = pod_affinity(required=[pod_term(WEB)])
    fans = [pod(f"fan-{i}", node=f"n{i}", cpu="1", owner="fan", affinity=near) for i in range(2)]
    certificate = proven(*NODES, *web(2), *fans)
    assert certificate.left_out == ("required affinity to other pods (2 pods)",)
    assert [number.value for number in certificate.numbers] == [1]


def test_without_a_solver_the_bound_is_counted() -> None:
    certificate = prove_repacking(
        Question(repack=True, preset="binpack"),
        snapshot(*NODES, *web()),
        IN_TREE,
        Limits(),
        find=lambda *_: Solution(Status.OPEN, why=NOT_INSTALLED),
    )
    [number] = certificate.numbers
    assert (number.value, number.bound, certificate.method) == (2, 2, COUNTING)
    assert certificate.notes == (f"no plan by the solver: {NOT_INSTALLED}",)


def test_a_plan_that_the_rules_refuse_is_dropped() -> None:
    """The plan has two pods of a port on one node, as if the model did not know ports."""
    certificate = prove_repacking(
        Question(repack=True),
        snapshot(*NODES, *web(2, ports=[80])),
        IN_TREE,
        Limits(),
        find=lambda *_: Solution(Status.SOLVED, (Stage("nodes", 1, 1),), ((0, 0, 2),)),
    )
    [number] = certificate.numbers
    assert (number.value, number.bound) == (2, 2)
    assert certificate.moves == ()
    assert certificate.notes == (
        "a plan with 1 was dropped: default/web-1 cannot go to n0:"
        " node(s) didn't have free ports for the requested pod ports",
    )


def test_words() -> None:
    certificate = Certificate(
        goal="fewest nodes for 9 pods",
        numbers=(Number("nodes", 8, 8), Number("moves", 4, 3), Number("more", None, 1)),
        method=SOLVER,
        seconds=1.25,
        left_out=("this rule",),
        notes=("a note",),
        before=9,
    )
    assert [*lines(certificate)] == [
        "fewest nodes for 9 pods:",
        "  nodes: 8, proven to be the best",
        "  moves: 4, and none has a better number than 3 (gap 25.0%)",
        "  more: no plan; none has a better number than 1",
        "  now 9",
        "  bound by CP-SAT, after 1.2 seconds",
        "  the model leaves out this rule; the plan was tried with it",
        "  a note",
    ]
