"""What plugins tell of one node: the numbers, and the change that would help."""

from typing import NamedTuple

import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.words import amount_in_words
from berth_plugins.node_name import NodeName
from tests.builders import (
    ZONE,
    node,
    node_affinity,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    requirement,
    selector,
    spread,
    taint,
    term,
    toleration,
)
from tests.insight.explain.asking import evaluation, verdict
from tests.plugins.evaluating import table


class Case(NamedTuple):
    """A pod, the cluster, and what is said of node n1 and by whom."""

    pod: Pod
    objects: list[Node | Pod]
    plugin: str
    details: list[Detail]


def change(
    kind: ChangeKind,
    what: str,
    words: str,
    amount: int = 0,
    of: float = 1.0,
    values: tuple[str, ...] = (),
) -> Change:
    return Change(kind=kind, what=what, words=words, amount=amount, shortfall=of, values=values)


def like(name: str, *, node: str = "") -> Pod:
    return pod(name, labels={"app": "web"}, node=node)


ZONES: list[Node | Pod] = [node("n1", zone="a"), node("n2", zone="b")]

CASES = [
    pytest.param(
        Case(
            pod(cpu="500m"),
            [node(cpu="4"), pod("old", cpu="3680m", node="n1")],
            "NodeResourcesFit",
            [
                Detail(
                    "needs cpu 500m, free 320m of 4000m",
                    change(
                        ChangeKind.FREE_RESOURCE, "cpu", "free 180m more cpu", 180, of=180 / 500
                    ),
                )
            ],
        ),
        id="too little is free",
    ),
    pytest.param(
        Case(
            pod(cpu="5", memory="3Gi"),
            [node(cpu="4", memory="2Gi"), pod("old", cpu="1", node="n1")],
            "NodeResourcesFit",
            [
                Detail(
                    "needs cpu 5000m, free 3000m of 4000m",
                    change(
                        ChangeKind.REQUEST_LESS,
                        "cpu",
                        "request 2000m cpu less, or have a larger node",
                        2000,
                        of=2 / 5,
                    ),
                ),
                Detail(
                    "needs memory 3Gi, free 2Gi of 2Gi",
                    change(
                        ChangeKind.REQUEST_LESS,
                        "memory",
                        "request 1Gi memory less, or have a larger node",
                        2**30,
                        of=1 / 3,
                    ),
                ),
            ],
        ),
        id="the node is too small, in two ways",
    ),
    pytest.param(
        Case(
            pod(requests={"example.com/gpu": 2}),
            [node()],
            "NodeResourcesFit",
            [Detail("has no example.com/gpu")],
        ),
        id="a resource that nobody knows",
    ),
    pytest.param(
        Case(
            pod(),
            [node(pods=1), pod("a", node="n1"), pod("b", node="n1")],
            "NodeResourcesFit",
            [
                Detail(
                    "has 2 pods, takes 1",
                    change(ChangeKind.FREE_POD_SLOT, "pods", "take 2 pods away", 2),
                )
            ],
        ),
        id="too many pods",
    ),
    pytest.param(
        Case(
            pod(tolerations=[toleration("old")]),
            [
                node(
                    taints=[
                        taint("old"),
                        taint("team", "a", effect="PreferNoSchedule"),
                        taint("dedicated", "gpu"),
                        taint("gone", effect="NoExecute"),
                    ]
                )
            ],
            "TaintToleration",
            [
                Detail(
                    f"taint {name} is not tolerated",
                    change(ChangeKind.REMOVE_TAINT, name, f"remove taint {name}, or tolerate it"),
                )
                for name in ("dedicated=gpu:NoSchedule", "gone:NoExecute")
            ],
        ),
        id="taints, without the tolerated and the mild ones",
    ),
    pytest.param(
        Case(
            pod(),
            [node(unschedulable=True)],
            "NodeUnschedulable",
            [
                Detail(
                    "is cordoned: spec.unschedulable is true",
                    change(
                        ChangeKind.UNCORDON,
                        "spec.unschedulable",
                        "uncordon it, or tolerate node.kubernetes.io/unschedulable",
                    ),
                )
            ],
        ),
        id="a cordoned node",
    ),
    pytest.param(
        Case(
            pod(ports=[8080, 9090]),
            [node(), pod("web", ns="shop", ports=[8080], node="n1")],
            "NodePorts",
            [
                Detail(
                    "port 8080/TCP is taken by shop/web",
                    change(
                        ChangeKind.FREE_PORT,
                        "8080/TCP",
                        "free port 8080/TCP, which shop/web has, or use another",
                    ),
                )
            ],
        ),
        id="a taken port, and who has it",
    ),
    pytest.param(
        Case(
            pod(node_selector={"disk": "ssd", "os": "linux"}),
            [node(labels={"disk": "hdd"})],
            "NodeAffinity",
            [
                Detail(
                    "label disk is 'hdd', must be ssd",
                    change(ChangeKind.LABEL_NODE, "disk", "label it disk=ssd", values=("ssd",)),
                ),
                Detail(
                    "has no label os, must be linux",
                    change(ChangeKind.LABEL_NODE, "os", "label it os=linux", values=("linux",)),
                ),
            ],
        ),
        id="nodeSelector",
    ),
    pytest.param(
        Case(
            pod(
                affinity=node_affinity(
                    required=[
                        term(requirement("a", "Exists"), requirement("b", "Exists")),
                        term(requirement("cores", "Gt", "8"), requirement("gpu", "DoesNotExist")),
                        term(requirement("zone", "NotIn", "x")),
                    ]
                )
            ),
            [node(labels={"cores": "4", "zone": "x"})],
            "NodeAffinity",
            [
                Detail(
                    "label cores is '4', must be above 8",
                    change(
                        ChangeKind.LABEL_NODE,
                        "cores",
                        "give label cores a value above 8",
                        values=("9",),
                    ),
                )
            ],
        ),
        id="of several terms, the first of those that nearly match",
    ),
    pytest.param(
        Case(
            pod(
                affinity=pod_affinity(required=[pod_term({"app": "db"}, key=ZONE)]),
            ),
            [*ZONES, pod("db", labels={"app": "db"}, node="n2")],
            "InterPodAffinity",
            [
                Detail(
                    f"{ZONE}=a has none of the pods to be near",
                    change(
                        ChangeKind.MOVE_PODS, f"{ZONE}=a", f"have a pod to be near in {ZONE}=a", 1
                    ),
                )
            ],
        ),
        id="pod affinity, by domain",
    ),
    pytest.param(
        Case(
            pod(affinity=pod_anti_affinity(required=[pod_term({"app": "web"}, key=ZONE)])),
            [*ZONES, like("a", node="n1"), like("b", node="n1")],
            "InterPodAffinity",
            [
                Detail(
                    f"{ZONE}=a has 2 pods to keep away from",
                    change(
                        ChangeKind.MOVE_PODS,
                        f"{ZONE}=a",
                        f"take what keeps it away (2) out of {ZONE}=a",
                        2,
                    ),
                )
            ],
        ),
        id="pod anti-affinity, by domain",
    ),
    pytest.param(
        Case(
            like("p"),
            [
                *ZONES,
                pod(
                    "loner",
                    node="n1",
                    affinity=pod_anti_affinity(required=[pod_term({"app": "web"}, key=ZONE)]),
                ),
            ],
            "InterPodAffinity",
            [
                Detail(
                    f"{ZONE}=a has 1 pod with anti-affinity to this one",
                    change(
                        ChangeKind.MOVE_PODS,
                        f"{ZONE}=a",
                        f"take what keeps it away (1) out of {ZONE}=a",
                        1,
                    ),
                )
            ],
        ),
        id="anti-affinity of a running pod",
    ),
    pytest.param(
        Case(
            pod(labels={"app": "web"}, spread=[spread(selector=selector({"app": "web"}))]),
            [*ZONES, like("a", node="n1"), like("b", node="n1"), like("c", node="n2")],
            "PodTopologySpread",
            [
                Detail(
                    f"{ZONE}=a has 2 of the pods to spread, {ZONE}=b has 1,"
                    " with this one skew 2: maxSkew is 1",
                    change(
                        ChangeKind.MOVE_PODS,
                        f"{ZONE}=a",
                        f"take 1 of the pods to spread out of {ZONE}=a",
                        1,
                        of=1 / 2,
                    ),
                )
            ],
        ),
        id="topology spread, by domain",
    ),
    pytest.param(
        Case(
            pod(labels={"app": "web"}, spread=[spread(selector=selector({"app": "web"}))]),
            [node("n1"), node("n2", zone="b")],
            "PodTopologySpread",
            [Detail("has no label topology.kubernetes.io/zone to spread by")],
        ),
        id="topology spread, without a domain",
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_a_rejection_comes_with_numbers(case: Case) -> None:
    told = verdict(evaluation(case.pod, *case.objects))

    assert [(obstacle.plugin, list(obstacle.details)) for obstacle in told.obstacles] == [
        (case.plugin, case.details)
    ]


def test_a_pod_that_names_its_node_is_told_so() -> None:
    waiting = pod(
        affinity=node_affinity(required=[term(fields=[requirement("metadata.name", "In", "n2")])])
    )
    told = verdict(evaluation(waiting, node("n1"), node("n2", cpu="0")))

    details = [detail for obstacle in told.obstacles for detail in obstacle.details]
    assert details == [Detail("is named n1, must be n2")], "a name is not for changing"


def test_a_pod_that_has_a_node_name_is_told_so() -> None:
    nodes = table(node("n1"))
    (told,) = NodeName().explain(CycleState(), PodInfo(pod(node="n2")), nodes, nodes.row_of["n1"])

    assert told == Detail(
        "spec.nodeName names n2",
        change(ChangeKind.EDIT_POD, "spec.nodeName", "name n1 in the pod's spec.nodeName"),
    )


@pytest.mark.parametrize(
    ("resource", "amount", "round_up", "words"),
    [
        pytest.param("cpu", 320, False, "320m", id="cpu in milli-cores"),
        pytest.param("memory", 3 * 2**29, False, "1.5Gi", id="memory with a unit"),
        pytest.param("memory", 2**30 - 1, False, "1023.9Mi", id="what is there is rounded down"),
        pytest.param("memory", 2**30 + 1, True, "1.1Gi", id="what is needed is rounded up"),
        pytest.param("ephemeral-storage", 1023, False, "1023", id="a few bytes"),
        pytest.param("hugepages-2Mi", 2**21, False, "2Mi", id="huge pages are bytes"),
        pytest.param("memory", -(2**31), False, "-2Gi", id="less than nothing"),
        pytest.param("example.com/gpu", 3, False, "3", id="pieces"),
    ],
)
def test_amounts_in_words(resource: str, amount: int, round_up: bool, words: str) -> None:
    assert amount_in_words(resource, amount, round_up=round_up) == words
