"""CertificateSigningRequests: who approves them, who signs them, and what comes of it."""

from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from berth.cluster.actions import Create, Patch
from berth.cluster.controllers.certificate_approving import CertificateApprovingController
from berth.cluster.controllers.certificate_requests import PATH, RequestView
from berth.cluster.controllers.certificate_signing import CertificateSigningController
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.table import Table
from berth.runtime.certificates import authority
from berth.runtime.clock import FakeClock

NOW = 1_767_225_600.0
MOMENT = datetime.fromtimestamp(NOW, UTC)
CA = authority(now=MOMENT, name="berth-ca")
KEY = ec.generate_private_key(ec.SECP256R1())

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT_USAGES = ["client auth", "digital signature"]
SERVER_USAGES = ["server auth", "digital signature", "key encipherment"]
NODE = "system:node:n1"


def csr(name: str = "ada", *groups: str, hosts: tuple[str, ...] = (), mail: str = "") -> str:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names += [x509.RFC822Name(mail)] if mail else []
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(KEY, hashes.SHA256())
    return b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def asked(
    request: str,
    *,
    signer: str = CLIENT,
    usages: list[str] = CLIENT_USAGES,
    approved: bool = True,
    **spec: Any,
) -> RequestView:
    conditions = [{"type": "Approved", "status": "True"}] if approved else []
    body = {
        "metadata": {"name": "r", "uid": "u", "resourceVersion": "7"},
        "spec": {"request": request, "signerName": signer, "usages": usages, **spec},
        "status": {"conditions": conditions},
    }
    return RequestView.decoder()(msgspec.json.encode(body))


def status_of(request: RequestView) -> dict[str, Any]:
    """Return the status that the signer writes."""
    table: Table[RequestView] = Table()
    controller = CertificateSigningController(table, authority=CA, clock=FakeClock(NOW))
    table.on_add(request)
    actions = controller.plan("r").actions
    if not actions:
        return {}
    (action,) = actions
    assert isinstance(action, Patch)
    assert action.path == f"{PATH}/r/status"
    assert action.body["metadata"] == {"uid": "u", "resourceVersion": "7"}
    status: dict[str, Any] = action.body["status"]
    return status


def issued(request: RequestView) -> x509.Certificate:
    return x509.load_pem_x509_certificate(b64decode(status_of(request)["certificate"]))


def test_a_certificate_is_what_was_asked_for() -> None:
    made = issued(asked(csr("ada", "developers"), expirationSeconds=86_400))

    made.verify_directly_issued_by(x509.load_pem_x509_certificate(CA.certificate))
    assert made.subject.rfc4514_string() == "CN=ada,O=developers"
    assert made.public_key() == KEY.public_key()
    assert made.not_valid_before_utc == MOMENT - timedelta(minutes=5)
    assert made.not_valid_after_utc == MOMENT + timedelta(days=1, minutes=-5)
    purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment) == (True, False)
    assert made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False


@pytest.mark.parametrize(
    ("seconds", "good_for"),
    [
        pytest.param(600, timedelta(minutes=10), id="a short one is not shortened"),
        pytest.param(28_800, timedelta(hours=8, minutes=-5), id="a longer one begins earlier"),
        pytest.param(10**9, timedelta(days=365, minutes=-5), id="a year at most"),
    ],
)
def test_how_long_it_is_good(seconds: int, good_for: timedelta) -> None:
    made = issued(asked(csr(), expirationSeconds=seconds))
    assert made.not_valid_after_utc == MOMENT + good_for


def test_a_server_gets_its_names() -> None:
    request = csr(NODE, "system:nodes", hosts=("n1.example.com",))
    made = issued(asked(request, signer=SERVING, usages=SERVER_USAGES))
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1.example.com"]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        pytest.param(
            asked(csr(), usages=["server auth"]),
            "invalid usage for client certificate: server auth",
            id="a client that wants to serve",
        ),
        pytest.param(
            asked(csr(), usages=["digital signature"]),
            "missing required usage for client certificate: client auth",
            id="a client that is none",
        ),
        pytest.param(
            asked(csr(NODE), signer=KUBELET),
            "subject organization is not system:nodes",
            id="a kubelet of no node",
        ),
        pytest.param(
            asked(csr("ada", "system:nodes"), signer=KUBELET),
            "subject common name does not begin with system:node:",
            id="a person among nodes",
        ),
        pytest.param(
            asked(csr(NODE, "system:nodes", hosts=("x",)), signer=KUBELET),
            "DNS subjectAltNames are not allowed",
            id="a client with a host name",
        ),
        pytest.param(
            asked(csr(NODE, "system:nodes"), signer=SERVING, usages=SERVER_USAGES),
            "DNS or IP subjectAltName is required",
            id="a server without one",
        ),
        pytest.param(
            asked(
                csr(NODE, "system:nodes", hosts=("x",), mail="a@b.c"),
                signer=SERVING,
                usages=SERVER_USAGES,
            ),
            "Email subjectAltNames are not allowed",
            id="a server with mail",
        ),
        pytest.param(
            asked(csr(NODE, "system:nodes"), signer=KUBELET, usages=["client auth"]),
            "usages did not match",
            id="a kubelet that signs nothing",
        ),
    ],
)
def test_what_is_not_signed_has_failed(request_: RequestView, why: str) -> None:
    approved, failed = status_of(request_)["conditions"]
    assert approved["type"] == "Approved"
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert failed["message"].startswith(why)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(asked(csr(), approved=False), id="not approved"),
        pytest.param(
            msgspec.structs.replace(asked(csr()), status={"certificate": "x"}), id="signed"
        ),
    ],
)
def test_what_is_left_alone(request_: RequestView) -> None:
    assert status_of(request_) == {}


def review(answers: dict[str, bool], request: RequestView) -> tuple[list[str], Patch | None]:
    """Let the approver ask for rights; return which, and its approval."""
    table: Table[RequestView] = Table()
    controller = CertificateApprovingController(table, clock=FakeClock(NOW))
    table.on_add(request)
    rights: list[str] = []
    while actions := controller.plan("r").actions:
        (action,) = actions
        if isinstance(action, Patch):
            return rights, action
        assert isinstance(action, Create)
        right = action.body["spec"]["resourceAttributes"]["subresource"]
        rights.append(right)
        answer = msgspec.json.encode({"status": {"allowed": answers[right]}})
        controller.finished("r", Outcome(action, answer))
    return rights, None


KUBELETS = asked(
    csr(NODE, "system:nodes"), signer=KUBELET, approved=False, username="system:bootstrap:x"
)


def test_a_node_that_may_have_a_certificate_gets_it() -> None:
    rights, approval = review({"nodeclient": True}, KUBELETS)
    assert rights == ["nodeclient"]
    assert approval is not None
    assert approval.path == f"{PATH}/r/approval"
    (condition,) = approval.body["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")
    assert condition["message"] == (
        "Auto approving kubelet client certificate after SubjectAccessReview."
    )


def test_a_node_renews_its_own() -> None:
    spec = {**KUBELETS.spec, "username": NODE}
    request = msgspec.structs.replace(KUBELETS, spec=spec)
    rights, approval = review({"selfnodeclient": True}, request)
    assert (rights, approval is not None) == (["selfnodeclient"], True)


def test_who_may_not_waits_for_somebody_else() -> None:
    assert review({"nodeclient": False}, KUBELETS) == (["nodeclient"], None)
    person = asked(csr("ada"), approved=False)
    assert review({}, person) == ([], None)
