"""What a user who may do everything in one namespace sends to the API to do harm with.

Each attack is one request, or a few in order. ``Want`` says what must come of it; whatever it says,
the cluster and its scheduler go on as before (``tests/tools/up/test_hostile_user.py``).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from tests.hostile_nulls import NULLS
from tests.hostile_requests import (
    APPS,
    BODIES,
    CORE,
    DEVICE_CLASS,
    DEVICES,
    EVENTS,
    HUGE,
    MERGE_PATCH,
    NAMESPACE,
    PATCHES,
    POLICY,
    QUERIES,
    RBAC,
    Attack,
    Object,
    Request,
    Want,
    alias_bomb,
    creates,
    exactly,
    pod,
)
from tests.hostile_text import C1, CLEARS, FORGES, HIDES, MARKUP, OVERWRITES, REVERSES


def asking(name: str, cpu: Any) -> Object:
    return pod(name, container={"resources": {"requests": {"cpu": cpu}}})


def claims(name: str, *requests: Object, **devices: Any) -> Callable[[], Sequence[Request]]:
    """Return what makes a claim and a pod that waits for it."""
    claim = {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }
    user = pod(name, resourceClaims=[{"name": "r", "resourceClaimName": name}])
    return lambda: [Request(f"{DEVICES}/resourceclaims", claim), Request(f"{CORE}/pods", user)]


def selecting(name: str, cel: str) -> Callable[[], Sequence[Request]]:
    return claims(name, exactly(cel=cel))


def term(key: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def workload(kind: str, name: str, *, replicas: Any, **spec: Any) -> Object:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": pod(name, nodeSelector={"no": "where"})["spec"],
    }
    return {
        "kind": kind,
        "apiVersion": "apps/v1",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
            **spec,
        },
    }


def owned(name: str, *, uid: str, kind: str = "Pod") -> Object:
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    return {
        "metadata": {"name": name, "ownerReferences": [owner], "finalizers": ["example.com/never"]},
        "spec": pod(name, schedulerName="nobody")["spec"],
    }


def many_labels(count: int) -> dict[str, str]:
    return {f"key-{i}": f"value-{i}" for i in range(count)}


def expressions(keys: int, values: int) -> Object:
    return {
        "matchExpressions": [
            {"key": f"k{i}", "operator": "NotIn", "values": [f"v{j}" for j in range(values)]}
            for i in range(keys)
        ]
    }


def anti_affinity(terms: int) -> Object:
    return {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": f"example.com/t{i}", "labelSelector": expressions(1, 1)}
                for i in range(terms)
            ]
        }
    }


MODEL: Final = 'device.attributes["gpu.example.com"].model'
AS: Final = "a" * 60 + "!"
ROWS: Final = "[" + ",".join(["0"] * 100) + "]"

_CEL: Final = (
    Attack("regex bomb by find", selecting("find-bomb", f'"{AS}".find("^(a+)+$") == ""')),
    Attack("regex bomb by matches", selecting("matches-bomb", f'!"{AS}".matches("^(a|aa)+$")')),
    Attack(
        "regex bomb against an attribute",
        selecting("attribute-bomb", f'({MODEL} + "{AS}").find("^(([a-z0-9])+.)+[A-Z]+$") == ""'),
    ),
    Attack(
        "regex with huge repeats",
        selecting("repeat-bomb", f'"{AS}".matches("((a{{0,1000}}){{0,1000}}){{0,1000}}b")'),
        Want.EITHER,
    ),
    Attack(
        "CEL loops in loops",
        selecting(
            "loops",
            f"{ROWS}.all(a, {ROWS}.all(b, {ROWS}.all(c, {ROWS}.all(d, a + b + c + d == 0))))",
        ),
        Want.REFUSED,
    ),
    Attack(
        "CEL strings that double",
        selecting(
            "doubles",
            'cel.bind(s0, "x", '
            + "".join(f"cel.bind(s{i + 1}, s{i} + s{i}, " for i in range(24))
            + "s24.size() > 0"
            + ")" * 25,
        ),
        Want.REFUSED,
    ),
    Attack(
        "CEL lists that double",
        selecting("lists", f"{ROWS}" + ".map(x, [x, x])" * 40 + ".size() > 0"),
        Want.REFUSED,
    ),
    Attack(
        "CEL in 900 brackets", selecting("brackets", "(" * 900 + "true" + ")" * 900), Want.REFUSED
    ),
    Attack("CEL of 900 negations", selecting("negations", "!" * 901 + "true"), Want.EITHER),
    Attack("CEL of 100 KB", selecting("long", " || ".join(["true"] * 12_500)), Want.REFUSED),
    Attack("CEL that is none", selecting("no-cel", "device.(("), Want.REFUSED),
    Attack("CEL with escapes", selecting("cel-escapes", f'"{C1}" == "\u202e"'), Want.EITHER),
)
_DEVICES: Final = (
    Attack(
        "devices: a constraint that nothing meets",
        claims(
            "constrained",
            *(exactly(f"r{i}", count=1) for i in range(16)),
            constraints=[{"matchAttribute": "gpu.example.com/unique"}],
        ),
        Want.EITHER,
    ),
    Attack(
        "devices: many alternatives, the last of which fits nowhere",
        claims(
            "alternatives",
            *(
                {
                    "name": f"r{i}",
                    "firstAvailable": [
                        {"name": f"s{j}", "deviceClassName": DEVICE_CLASS, "count": 2}
                        for j in range(8)
                    ],
                }
                for i in range(8)
            ),
            exactly("last", cel=f'{MODEL} == "none"'),
        ),
        Want.EITHER,
    ),
    Attack(
        "devices: more than there are, each distinct",
        claims(
            "distinct",
            exactly("many", count=32),
            constraints=[{"distinctAttribute": "gpu.example.com/model"}],
        ),
        Want.EITHER,
    ),
    Attack("devices: a billion", claims("billion", exactly(count=10**9)), Want.EITHER),
    Attack(
        "devices: 1000 requests",
        claims("requests", *(exactly(f"r{i}") for i in range(1000))),
        Want.REFUSED,
    ),
    Attack(
        "devices: an allocation of one's own making",
        lambda: [
            *claims("forged", exactly())(),
            Request(
                f"{DEVICES}/resourceclaims/forged/status",
                {
                    "status": {
                        "allocation": {
                            "devices": {
                                "results": [
                                    {"request": "r", "driver": "gpu.example.com",
                                     "pool": C1, "device": CLEARS}
                                ]
                            },
                            "nodeSelector": {"nodeSelectorTerms": [term(MARKUP, FORGES)]},
                        }
                    }
                },
                method="PATCH",
                content_type=MERGE_PATCH,
            ),
        ],
        Want.EITHER,
    ),
)  # fmt: skip
_QUANTITIES: Final = (
    Attack("cpu 1e999999999", creates(asking("exponent", "1e999999999")), Want.EITHER),
    Attack("cpu 1e-999999999", creates(asking("tiny", "1e-999999999")), Want.EITHER),
    Attack("cpu of 5,000 digits", creates(asking("digits", HUGE)), Want.REFUSED),
    Attack("cpu of 5,000 digits behind the point", creates(asking("point", f"0.{HUGE}")),
           Want.REFUSED),
    Attack("a negative cpu", creates(asking("negative", "-1")), Want.REFUSED, "greater than"),
    Attack("cpu that is none", creates(asking("none", CLEARS)), Want.REFUSED, "quantities must"),
    Attack("a priority beyond 32 bits", creates(pod("priority", priority=2**40)), Want.REFUSED),
    Attack("the longest grace period",
           creates(pod("grace", terminationGracePeriodSeconds=2**63 - 1, schedulerName="nobody"))),
    Attack("the longest toleration",
           creates(pod("tolerates", tolerations=[
               {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2**63 - 1}]))),
    Attack("a skew beyond 32 bits",
           creates(pod("skew", topologySpreadConstraints=[
               {"maxSkew": 2**40, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}])),
           Want.REFUSED),
    Attack("a budget of 5,000 digits of percent",
           creates({"metadata": {"name": "percent"},
                    "spec": {"minAvailable": f"{HUGE}%", "selector": {}}},
                   path=f"{POLICY}/poddisruptionbudgets"),
           Want.REFUSED),
    Attack("a claim for 1e30 of storage",
           creates({"metadata": {"name": "storage"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                             "resources": {"requests": {"storage": "1e30"}}}},
                   path=f"{CORE}/persistentvolumeclaims"),
           Want.EITHER),
    Attack("a port of a Service of 5,000 digits",
           lambda: [Request(f"{CORE}/services",
                            f'{{"metadata": {{"name": "p"}}, "spec": {{"ports": [{{"port": {HUGE}'
                            "}]}}".encode())],
           Want.REFUSED),
)  # fmt: skip
_TEXTS: Final = (
    *(
        Attack(
            f"a claim's name with {what}",
            creates(pod(f"text-{number}", volumes=[
                {"name": "v", "persistentVolumeClaim": {"claimName": text}}])),
            Want.EITHER,
        )
        for number, (what, text) in enumerate((
            ("escape sequences", CLEARS),
            ("markup", MARKUP),
            ("a closing tag", "[/x]"),
            ("a line of the log", FORGES),
            ("letters turned round", REVERSES),
            ("letters nobody sees", HIDES),
            ("controls of Latin-1", C1),
            ("carriage returns", OVERWRITES),
            ("a hundred thousand letters", "x" * 100_000),
        ))
    ),
    Attack("an image's name with escapes",
           creates(pod("image", container={"image": CLEARS + MARKUP}))),
    Attack("annotations with escapes",
           creates({"metadata": {"name": "annotated", "annotations": {"a": CLEARS + C1 + REVERSES}},
                    "spec": pod("annotated")["spec"]})),
    Attack("a scheduler's name with escapes",
           creates(pod("by", schedulerName=CLEARS))),
    Attack("an affinity with escapes",
           creates(pod("affine", affinity={"nodeAffinity": {
               "requiredDuringSchedulingIgnoredDuringExecution": {
                   "nodeSelectorTerms": [term("zone", CLEARS, MARKUP, C1)]}}})),
           Want.EITHER),
    Attack("an event with escapes",
           creates({"metadata": {"name": "event"}, "eventTime": "2030-01-01T00:00:00.000000Z",
                    "action": CLEARS, "reason": C1, "note": CLEARS + FORGES, "type": "Normal",
                    "reportingController": "example.com/x", "reportingInstance": MARKUP,
                    "regarding": {"kind": "Pod", "name": CLEARS, "namespace": NAMESPACE}},
                   path=f"{EVENTS}/events"),
           Want.EITHER),
    Attack("a claim of a name with escapes",
           creates(pod("claimant", resourceClaims=[
               {"name": "r", "resourceClaimName": CLEARS}])), Want.EITHER),
    Attack("a name with escapes", creates(pod(CLEARS)), Want.REFUSED, "metadata.name"),
    Attack("a label with escapes",
           creates({"metadata": {"name": "l", "labels": {"a": CLEARS}},
                    "spec": pod("l")["spec"]}), Want.REFUSED, "metadata.labels"),
    Attack("a resource with markup",
           creates(pod("r", container={"resources": {"requests": {"example.com/[/x]": "1"}}})),
           Want.REFUSED),
    Attack("a scheduling gate with escapes",
           creates(pod("g", schedulingGates=[{"name": CLEARS}])), Want.REFUSED),
    Attack("a name of 5,000 letters", creates(pod("x" * 5_000)), Want.REFUSED, "metadata.name"),
)  # fmt: skip
_SIZES: Final = (
    Attack("annotations of 1 MB",
           creates({"metadata": {"name": "mb", "annotations": {"a": "x" * 1_000_000}},
                    "spec": pod("mb")["spec"]}), Want.REFUSED, "annotations"),
    Attack("annotations of 200 KB",
           creates({"metadata": {"name": "kb", "annotations": {"a": "x" * 200_000}},
                    "spec": pod("kb")["spec"]})),
    Attack("1000 containers",
           creates({"metadata": {"name": "containers"}, "spec": {"containers": [
               {"name": f"c{i}", "image": f"image-{i}"} for i in range(1000)]}})),
    Attack("5,000 host ports",
           creates(pod("ports", container={"ports": [
               {"containerPort": i, "hostPort": i} for i in range(1, 5_001)]}))),
    Attack("1000 tolerations",
           creates(pod("tolerations", tolerations=[
               {"key": f"k{i}", "operator": "Equal", "value": f"v{i}"} for i in range(1000)]))),
    Attack("1000 terms of node affinity",
           creates(pod("terms", affinity={"nodeAffinity": {
               "requiredDuringSchedulingIgnoredDuringExecution": {
                   "nodeSelectorTerms": [term(f"k{i}", "v") for i in range(1000)]},
               "preferredDuringSchedulingIgnoredDuringExecution": [
                   {"weight": 100, "preference": term(f"k{i}", "v")} for i in range(1000)]}}))),
    Attack("300 terms of anti-affinity, each with a topology of its own",
           creates(*(pod(f"anti-{i}", affinity=anti_affinity(300)) for i in range(3)))),
    Attack("300 constraints of topology spread",
           creates(pod("spread", topologySpreadConstraints=[
               {"maxSkew": 1, "topologyKey": f"example.com/s{i}",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": expressions(3, 3)} for i in range(300)]))),
    Attack("a node selector of 1000 labels",
           creates(pod("selector", nodeSelector=many_labels(1000)))),
    Attack("1000 resources that nothing has",
           creates(pod("resources", container={"resources": {
               "requests": {f"example.com/r{i}": "1" for i in range(1000)},
               "limits": {f"example.com/r{i}": "1" for i in range(1000)}}}))),
    Attack("200 volumes whose claims there are none of",
           creates(pod("volumes", volumes=[
               {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}}
               for i in range(200)]))),
    Attack("1000 labels on 20 pods",
           creates(*({"metadata": {"name": f"labelled-{i}", "labels": many_labels(1000)},
                      "spec": pod("x", nodeSelector={"no": "where"})["spec"]} for i in range(20)))),
    Attack("a Service that selects by 1000 labels",
           creates({"metadata": {"name": "service"}, "spec": {
               "ports": [{"port": 80}], "selector": many_labels(1000)}}, path=f"{CORE}/services")),
    Attack("a budget that selects by 300 times 300 values",
           creates({"metadata": {"name": "budget"}, "spec": {
               "maxUnavailable": 0, "selector": expressions(300, 300)}},
               path=f"{POLICY}/poddisruptionbudgets")),
    Attack("a million replicas",
           creates(workload("Deployment", "million", replicas=1_000_000),
                   path=f"{APPS}/deployments"),
           undo=(Request(f"{APPS}/deployments/million", method="DELETE"),)),
    Attack("a million replicas at once, each with a claim",
           creates(workload("StatefulSet", "stateful", replicas=1_000_000,
                            podManagementPolicy="Parallel", serviceName="s",
                            volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1Gi"}}}}]),
                   path=f"{APPS}/statefulsets"),
           undo=(Request(f"{APPS}/statefulsets/stateful", method="DELETE"),)),
    Attack("replicas of 5,000 digits",
           lambda: [Request(f"{APPS}/deployments", msgspec.json.encode(
               workload("Deployment", "d", replicas=0)).replace(
                   b'"replicas":0', b'"replicas":' + HUGE.encode()))],
           Want.REFUSED),
)  # fmt: skip
_OWNERS: Final = (
    Attack("an owner of its own", creates(owned("ouroboros", uid="u"))),
    Attack(
        "owners in a circle, deleted with their dependents",
        lambda: [
            *creates(owned("circle", uid="a"), owned("square", uid="b", kind="ConfigMap"))(),
            Request(f"{CORE}/pods/circle?propagationPolicy=Foreground", method="DELETE"),
        ],
    ),
    Attack(
        "1000 owners",
        creates(
            {
                "metadata": {
                    "name": "owners",
                    "ownerReferences": [
                        {"apiVersion": "example.com/v1", "kind": "K", "name": "n", "uid": f"{i}"}
                        for i in range(1000)
                    ],
                },
                "spec": pod("owners")["spec"],
            }
        ),
    ),
    Attack(
        "a pod that never goes",
        lambda: [
            *creates({
                "metadata": {"name": "never", "finalizers": ["example.com/never"]},
                "spec": pod("never")["spec"],
            })(),
            Request(f"{CORE}/pods/never", method="DELETE"),
        ],
    ),
    Attack(
        "a pod on a node that there is none of",
        creates(pod("nowhere", nodeName="no-such-node")),
    ),
    Attack(
        "a binding to a node with escapes",
        lambda: [
            *creates(pod("bound", schedulerName="nobody"))(),
            Request(
                f"{CORE}/pods/bound/binding",
                {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": CLEARS}},
            ),
        ],
        Want.EITHER,
    ),
)  # fmt: skip
_RIGHTS: Final = (
    Attack("a pod in another namespace",
           creates(pod("intruder"), path="/api/v1/namespaces/default/pods"),
           Want.REFUSED, "forbidden"),
    Attack("a node", creates({"metadata": {"name": "node"}}, path="/api/v1/nodes"),
           Want.REFUSED, "forbidden"),
    Attack("a role with more rights",
           creates({"metadata": {"name": "all"}, "roleRef": {
               "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
               "name": "cluster-admin"}, "subjects": []}, path=f"{RBAC}/rolebindings"),
           Want.EITHER),
    Attack("a priority that there is none of", creates(pod("p", priorityClassName="system-x")),
           Want.REFUSED),
    Attack("the priority of the system",
           creates(pod("p", priorityClassName="system-node-critical")), Want.EITHER),
    Attack("server-side apply",
           lambda: [Request(f"{CORE}/pods/apply?fieldManager=m", alias_bomb().encode(),
                            method="PATCH", content_type="application/apply-patch+yaml")],
           Want.REFUSED),
)  # fmt: skip

ATTACKS: Final = (
    *_CEL, *_DEVICES, *BODIES, *PATCHES, *QUERIES, *_QUANTITIES, *_TEXTS, *_SIZES, *_OWNERS,
    *_RIGHTS, *NULLS,
)  # fmt: skip
