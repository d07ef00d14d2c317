"""Approves the requests of kubelets for client certificates (``csrapproving``).

A node that may create ``certificatesigningrequests/nodeclient`` gets its first certificate, one
that may create ``certificatesigningrequests/selfnodeclient`` renews its own. Whether it may is
asked of the API server; nobody has these rights unless somebody binds the ClusterRoles.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from berth.cluster.actions import Create, Patch
from berth.cluster.controllers.certificate_requests import (
    GROUP,
    KUBELET_CLIENT,
    PATH,
    STORAGE_KEY,
    RequestView,
    common_name,
    why_not_signed,
)
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.strategies.certificates import APPROVED, DENIED
from berth.runtime.clock import Clock, rfc3339

REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SELF: Final = "selfnodeclient"
ANY: Final = "nodeclient"
MESSAGES: Final = {
    SELF: "Auto approving self kubelet client certificate after SubjectAccessReview.",
    ANY: "Auto approving kubelet client certificate after SubjectAccessReview.",
}


class _Answer(msgspec.Struct):
    status: dict[str, Any] = {}


class CertificateApprovingController:
    """Decides about requests of kubelets. The key is the name of one."""

    name = "certificate-approving"

    def __init__(self, requests: Table[RequestView], *, clock: Clock) -> None:
        self._requests = requests
        self._clock = clock
        self._allowed: dict[tuple[str, str], bool] = {}
        """By uid of the request and right: what the API server said."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(old: RequestView | None, new: RequestView | None) -> None:
            if new is not None and new.signer == KUBELET_CLIENT:
                enqueue(new.metadata.key)
            elif old is not None and new is None:
                for right in MESSAGES:
                    self._allowed.pop((old.metadata.uid, right), None)

        self._requests.listen(changed)

    def plan(self, key: str) -> Plan:
        asked = self._requests.get(key)
        if asked is None or asked.has(APPROVED, DENIED) or asked.status.get("certificate"):
            return NOTHING
        for right in _rights(asked):
            allowed = self._allowed.get((asked.metadata.uid, right))
            if allowed is None:
                return Plan([_review(asked, right)])
            if allowed:
                return Plan([self._approval(asked, MESSAGES[right])])
        return NOTHING

    def finished(self, key: str, outcome: Outcome) -> None:
        action, asked = outcome.action, self._requests.get(key)
        if isinstance(action, Create) and outcome.error is None and asked is not None:
            said = msgspec.json.decode(outcome.answer, type=_Answer)
            self._allowed[asked.metadata.uid, action.note] = bool(said.status.get("allowed"))

    def _approval(self, asked: RequestView, message: str) -> Patch:
        now = rfc3339(self._clock.now())
        condition = {
            "type": APPROVED,
            "status": "True",
            "reason": "AutoApproved",
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        metadata = {"uid": asked.metadata.uid, "resourceVersion": asked.metadata.resource_version}
        status = {"conditions": [*asked.conditions, condition]}
        return Patch(
            f"{PATH}/{asked.metadata.name}/approval", {"metadata": metadata, "status": status}
        )


def new_controller(context: ControllerContext) -> CertificateApprovingController:
    return CertificateApprovingController(
        context.table(STORAGE_KEY, RequestView), clock=context.clock
    )


def _rights(asked: RequestView) -> Iterator[str]:
    """Yield the rights, one of which who made the request must have."""
    request = asked.request()
    if why_not_signed(KUBELET_CLIENT, request, asked.usages):
        return
    if asked.spec.get("username") == common_name(request):
        yield SELF
    yield ANY


def _review(asked: RequestView, right: str) -> Create:
    spec = {
        "user": asked.spec.get("username", ""),
        "uid": asked.spec.get("uid", ""),
        "groups": asked.spec.get("groups") or [],
        "extra": asked.spec.get("extra") or {},
        "resourceAttributes": {
            "group": GROUP,
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": right,
        },
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": spec,
    }
    return Create(REVIEWS, body, note=right)
