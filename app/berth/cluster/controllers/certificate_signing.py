"""Signs approved CertificateSigningRequests with the cluster's authority (``csrsigning``)."""

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from berth.cluster.actions import Patch
from berth.cluster.controllers.certificate_requests import (
    PATH,
    SIGNERS,
    STORAGE_KEY,
    RequestView,
    why_not_signed,
)
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.strategies.certificates import APPROVED, DENIED, FAILED
from berth.runtime.certificates import KeyPair, signed_request
from berth.runtime.clock import Clock, rfc3339

SIGNING_SECONDS: Final = 365 * 86_400
"""How long a certificate is good: the default of ``--cluster-signing-duration``."""
LEAST_SECONDS: Final = 600


class CertificateSigningController:
    """Puts certificates into requests. The key is the name of one."""

    name = "certificate-signing"

    def __init__(self, requests: Table[RequestView], *, authority: KeyPair, clock: Clock) -> None:
        self._requests = requests
        self._authority = authority
        self._clock = clock

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(_old: RequestView | None, new: RequestView | None) -> None:
            if new is not None and new.signer in SIGNERS:
                enqueue(new.metadata.key)

        self._requests.listen(changed)

    def plan(self, key: str) -> Plan:
        asked = self._requests.get(key)
        if asked is None or asked.metadata.deletion_timestamp is not None:
            return NOTHING
        is_decided = asked.has(APPROVED) and not asked.has(DENIED, FAILED)
        if not is_decided or asked.status.get("certificate"):
            return NOTHING
        request = asked.request()
        why = why_not_signed(asked.signer, request, asked.usages)
        if why:
            return Plan([self._failed(asked, why)])
        certificate = signed_request(
            self._authority,
            request,
            now=datetime.fromtimestamp(self._clock.now(), UTC),
            seconds=_seconds(asked.spec.get("expirationSeconds")),
            usages=asked.usages,
        )
        return Plan([_status(asked, {"certificate": b64encode(certificate).decode()})])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: the certificate is seen, or tried again."""

    def _failed(self, asked: RequestView, why: str) -> Patch:
        condition = {
            "type": FAILED,
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": why,
            "lastUpdateTime": rfc3339(self._clock.now()),
        }
        return _status(asked, {"conditions": [*asked.conditions, condition]})


def new_controller(context: ControllerContext) -> CertificateSigningController | None:
    if context.authority is None:
        return None
    return CertificateSigningController(
        context.table(STORAGE_KEY, RequestView), authority=context.authority, clock=context.clock
    )


def _seconds(asked: int | None) -> int:
    return SIGNING_SECONDS if asked is None else min(max(asked, LEAST_SECONDS), SIGNING_SECONDS)


def _status(asked: RequestView, status: dict[str, object]) -> Patch:
    metadata = {"uid": asked.metadata.uid, "resourceVersion": asked.metadata.resource_version}
    path = f"{PATH}/{asked.metadata.name}/status"
    return Patch(path, {"metadata": metadata, "status": status})
