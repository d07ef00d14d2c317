"""CertificateSigningRequests: what they ask for, and which signer of Kubernetes may give it.

The rules of ``k8s.io/api/certificates/v1`` and of ``pkg/controller/certificates``.
"""

from base64 import b64decode
from collections.abc import Collection
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from berth.cluster.access.users import NODES
from berth.cluster.object_views import ObjectView

GROUP: Final = "certificates.k8s.io"
PATH: Final = f"/apis/{GROUP}/v1/certificatesigningrequests"
STORAGE_KEY: Final = f"certificatesigningrequests.{GROUP}"

API_SERVER_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"
SIGNERS: Final = (API_SERVER_CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY_UNKNOWN)

NODE_PREFIX: Final = "system:node:"
CLIENT_AUTH: Final = "client auth"
SERVER_AUTH: Final = "server auth"
DIGITAL_SIGNATURE: Final = "digital signature"
KEY_ENCIPHERMENT: Final = "key encipherment"
CLIENT_USAGES: Final = frozenset({DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CLIENT_AUTH})


class RequestView(ObjectView, frozen=True):
    """A CertificateSigningRequest."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def signer(self) -> str:
        name: str = self.spec.get("signerName", "")
        return name

    @property
    def usages(self) -> frozenset[str]:
        return frozenset(self.spec.get("usages") or ())

    @property
    def conditions(self) -> list[dict[str, Any]]:
        return list(self.status.get("conditions") or ())

    def has(self, *types: str) -> bool:
        """Whether a condition of one of these types is there."""
        return any(condition.get("type") in types for condition in self.conditions)

    def request(self) -> x509.CertificateSigningRequest:
        """Return what is in it. The API server accepts no other than one that can be read."""
        return x509.load_pem_x509_csr(b64decode(self.spec["request"]))


def why_not_signed(
    signer: str, request: x509.CertificateSigningRequest, usages: Collection[str]
) -> str:
    """Return what *signer* has against a request, empty if nothing."""
    if signer == API_SERVER_CLIENT:
        return _why_no_client(usages)
    if signer == KUBELET_CLIENT:
        return _why_no_kubelet(request, usages, CLIENT_AUTH, names=False)
    if signer == KUBELET_SERVING:
        return _why_no_kubelet(request, usages, SERVER_AUTH, names=True)
    return ""


def common_name(request: x509.CertificateSigningRequest) -> str:
    return next(iter(_subject(request, NameOID.COMMON_NAME)), "")


def _why_no_client(usages: Collection[str]) -> str:
    for usage in sorted(set(usages) - CLIENT_USAGES):
        return f"invalid usage for client certificate: {usage}"
    if CLIENT_AUTH not in usages:
        return f"missing required usage for client certificate: {CLIENT_AUTH}"
    return ""


def _why_no_kubelet(
    request: x509.CertificateSigningRequest, usages: Collection[str], purpose: str, *, names: bool
) -> str:
    """Evaluate a kubelet's request for *purpose*; of a server with DNS or IP *names*."""
    if _subject(request, NameOID.ORGANIZATION_NAME) != [NODES]:
        return f"subject organization is not {NODES}"
    if not common_name(request).startswith(NODE_PREFIX):
        return f"subject common name does not begin with {NODE_PREFIX}"
    has_names = {kind: bool(_alternatives(request, kind)) for kind in _KINDS}
    is_reachable = has_names[x509.DNSName] or has_names[x509.IPAddress]
    if names and not is_reachable:
        return "DNS or IP subjectAltName is required"
    if not names and is_reachable:
        kind = "DNS" if has_names[x509.DNSName] else "IP"
        return f"{kind} subjectAltNames are not allowed"
    if has_names[x509.RFC822Name]:
        return "Email subjectAltNames are not allowed"
    if has_names[x509.UniformResourceIdentifier]:
        return "URI subjectAltNames are not allowed"
    needed = {DIGITAL_SIGNATURE, purpose}
    if set(usages) not in (needed, needed | {KEY_ENCIPHERMENT}):
        told = f"{DIGITAL_SIGNATURE},{KEY_ENCIPHERMENT},{purpose}"
        return f"usages did not match [{told}] (key encipherment is optional)"
    return ""


_KINDS: Final = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)


def _subject(request: x509.CertificateSigningRequest, kind: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in request.subject.get_attributes_for_oid(kind)]


def _alternatives(
    request: x509.CertificateSigningRequest, kind: type[x509.GeneralName]
) -> list[x509.GeneralName]:
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [each for each in found if isinstance(each, kind)]
