"""Nulls where there is no null, and other parts of objects that nobody may be able to read."""

from typing import Any, Final

import msgspec

from berth.cluster.schemas import builtin, protobuf
from tests.cluster.every_kind import EVERY_KIND
from tests.cluster.every_status import STATUSES
from tests.hostile_requests import (
    APPS,
    CORE,
    NAMESPACE,
    POLICY,
    RBAC,
    STRATEGIC,
    Attack,
    Object,
    Request,
    Want,
    nested,
    pod,
)

AUTOSCALERS: Final = f"/apis/autoscaling/v1/namespaces/{NAMESPACE}/horizontalpodautoscalers"
NOTE: Final = "autoscaling.alpha.kubernetes.io/metrics"
ALL: Final = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": None}


def replaced(name: str, path: str, made: Object, patch: Object, below: str = "") -> Attack:
    """Create an object, and replace parts of it by *patch*, strategically."""
    requests = [
        Request(path, {"metadata": {"name": "n"}, **made}),
        Request(f"{path}/n{below}", patch, method="PATCH", content_type=STRATEGIC),
    ]
    undo = [Request(f"{path}/n", method="DELETE")]
    return Attack(f"null in {name}", lambda: requests, Want.EITHER, undo=undo)


def _without_pods(key: str) -> Object:
    made: Any = EVERY_KIND[key]
    return {"spec": {**made["spec"], "replicas": 0}}


def _too_deep() -> list[Request]:
    schema = builtin.schema("io.k8s.api.apps.v1.ControllerRevision")
    data = msgspec.json.decode(nested(900))
    obj = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "deep"}}
    body = protobuf.encode({**obj, "revision": 1, "data": data}, schema)
    path = f"{APPS}/controllerrevisions"
    return [Request(path, body, content_type=protobuf.MEDIA_TYPE)]


NULLS: Final = (
    Attack(
        "null in a role",
        lambda: [
            Request(f"{RBAC}/roles", {"metadata": {"name": "n"}, "rules": []}),
            Request(
                f"{RBAC}/roles/n",
                {"$patch": "replace", "metadata": {"name": "n"}, "rules": [ALL]},
                method="PATCH",
                content_type=STRATEGIC,
            ),
        ],
        Want.EITHER,  # the guest may have all of it in his own namespace
        undo=[Request(f"{RBAC}/roles/n", method="DELETE")],
    ),
    *(
        replaced(
            f"the status of {plural}",
            f"{APPS}/{plural}",
            _without_pods(f"apps/v1/{plural}"),
            {"status": {"$patch": "replace", **STATUSES[f"apps/v1/{plural}"],
                        "conditions": [None, {"type": None, "status": None}]}},
            "/status",
        )
        for plural in ("deployments", "replicasets", "statefulsets")
    ),
    replaced(
        "the claims of a stateful set",
        f"{APPS}/statefulsets",
        _without_pods("apps/v1/statefulsets"),
        {"spec": {"$patch": "replace", **_without_pods("apps/v1/statefulsets")["spec"],
                  "volumeClaimTemplates": [None, {"metadata": None}]}},
    ),
    replaced(
        "a budget",
        f"{POLICY}/poddisruptionbudgets",
        {"spec": {"minAvailable": 0, "selector": {"matchLabels": {"none": "none"}}}},
        {"spec": {"$patch": "replace", "minAvailable": None,
                  "selector": {"matchLabels": {"none": None}, "matchExpressions": [None]}}},
    ),
    replaced(
        "a quota",
        f"{CORE}/resourcequotas",
        {"spec": {"hard": {"services.nodeports": "9"}}},
        {"status": {"$patch": "replace", "hard": {"services.nodeports": None}, "used": None}},
        "/status",
    ),
    Attack(
        "metrics that are none, in an annotation",
        lambda: [
            Request(AUTOSCALERS, {
                **EVERY_KIND["autoscaling/v1/horizontalpodautoscalers"],
                "metadata": {"name": f"n{number}", "annotations": {NOTE: said}},
            })
            for number, said in enumerate(("5", "[5]", '[{"type": 5}]', "[" * 100_000))
        ],
        Want.ACCEPTED,
        undo=[Request(f"{AUTOSCALERS}/n{number}", method="DELETE") for number in range(4)],
    ),
    Attack("a protobuf body that is too deep", _too_deep, Want.REFUSED, "exceeded max depth"),
    Attack(
        "labels by a binding",
        lambda: [
            Request(f"{CORE}/pods", pod("labelled")),
            Request(f"{CORE}/pods/labelled/binding", {
                "metadata": {"name": "labelled", "labels": {"a b\n": "\x1b[2J"}},
                "target": {"kind": "Node", "name": "none"},
            }),
        ],
        Want.REFUSED,
    ),
)  # fmt: skip
