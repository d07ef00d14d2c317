"""Certificate signing requests: who made them, who may approve and sign them, and for whom.

CertificateApproval, CertificateSigning and CertificateSubjectRestriction, one class each.
"""

from base64 import b64decode
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import Authorizer
from berth.cluster.access.users import MASTERS, User
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType, section
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube.field_errors import quoted

GROUP: Final = "certificates.k8s.io"
CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"

REQUESTS = find(GROUP, "v1", "certificatesigningrequests").storage_key


class CertificateApproval(Step):
    """Who approves or denies needs the right to ``approve`` for the signer."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_approval = resource.storage_key == REQUESTS and subresource == "approval"
        return operation is Operation.UPDATE and is_approval

    def validate(self, request: AdmissionRequest) -> None:
        signer = _signer(request.old_object)
        if not _may(self._authorizer, request.context.user, "approve", signer):
            why = f"user not permitted to approve requests with signerName {quoted(signer)}"
            raise forbidden(request, why)


class CertificateSigning(Step):
    """Who puts a certificate into the status needs the right to ``sign`` for the signer."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_status = resource.storage_key == REQUESTS and subresource == "status"
        return operation is Operation.UPDATE and is_status

    def validate(self, request: AdmissionRequest) -> None:
        new, old = ((each or {}).get("status") or {} for each in _both(request))
        if all(new.get(field) == old.get(field) for field in ("certificate", "conditions")):
            return
        signer = _signer(request.old_object)
        if not _may(self._authorizer, request.context.user, "sign", signer):
            why = f"user not permitted to sign requests with signerName {quoted(signer)}"
            raise forbidden(request, why)


class CertificateSubjectRestriction(Step):
    """Nobody becomes a ``system:masters`` by a certificate that the API server trusts.

    A request also gets the user who makes it, which is the strategy's part in a real server.
    """

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_request = resource.storage_key == REQUESTS and not subresource
        return operation is Operation.CREATE and is_request

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        spec, user = section(request.object, "spec"), request.context.user
        for field in ("username", "uid", "groups", "extra"):
            spec.pop(field, None)
        spec |= user.info()

    def validate(self, request: AdmissionRequest) -> None:
        if _signer(request.object) != CLIENT_SIGNER:
            return
        spec = (request.object or {}).get("spec") or {}
        try:
            subject = x509.load_pem_x509_csr(b64decode(spec.get("request") or "")).subject
        except ValueError as exc:
            raise forbidden(request, f"failed to parse CSR: {exc}") from None
        groups = [each.value for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
        if MASTERS in groups:
            why = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            raise forbidden(request, why)


def _both(request: AdmissionRequest) -> tuple[Object | None, Object | None]:
    return request.object, request.old_object


def _signer(obj: Object | None) -> str:
    name: str = ((obj or {}).get("spec") or {}).get("signerName") or ""
    return name


def _may(authorizer: Authorizer, user: User, verb: str, signer: str) -> bool:
    """Tell whether *user* has the right for the signer, or for all of its domain."""
    names = (signer, f"{signer.partition('/')[0]}/*")
    return any(
        authorizer.authorize(user, Attributes(verb, GROUP, "signers", name=name)).allowed
        for name in names
    )
