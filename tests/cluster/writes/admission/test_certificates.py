"""Certificate signing requests: whose they are, and who decides on them."""

from base64 import b64encode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from berth.cluster.access.users import User
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.writes.booted import Booted

REQUESTS = find("certificates.k8s.io", "v1", "certificatesigningrequests")
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = find(RBAC, "v1", "clusterroles")
BINDINGS = find(RBAC, "v1", "clusterrolebindings")
SIGNER = "example.com/robots"
ANN = User("ann", ("staff",), "7", {"example.com/team": ("a", "b")})


@pytest.fixture
def cluster() -> Booted:
    return Booted()


def pem(organization: str) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return b64encode(request.public_bytes(Encoding.PEM)).decode()


def csr(signer: str = SIGNER, *, request: str = "", **spec: object) -> Object:
    request = request or pem("staff")
    return {
        "metadata": {"name": "c"},
        "spec": {"request": request, "signerName": signer, "usages": ["client auth"], **spec},
    }


def allow(cluster: Booted, verb: str, signer: str) -> None:
    """Let ann do that for a signer."""
    rule = {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "resourceNames": [signer],
        "verbs": [verb],
    }
    cluster.create(CLUSTER_ROLES, {"metadata": {"name": verb}, "rules": [rule]})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": verb}
    subject = {"apiGroup": RBAC, "kind": "User", "name": "ann"}
    cluster.create(BINDINGS, {"metadata": {"name": verb}, "roleRef": role, "subjects": [subject]})


def test_a_request_says_who_made_it(cluster: Booted) -> None:
    spec = cluster.create(REQUESTS, csr(username="somebody", groups=["system:masters"]), user=ANN)
    assert {key: spec["spec"].get(key) for key in ("username", "uid", "groups", "extra")} == {
        "username": "ann",
        "uid": "7",
        "groups": ["staff"],
        "extra": {"example.com/team": ["a", "b"]},
    }


APPROVED = {"conditions": [{"type": "Approved", "status": "True", "reason": "R"}]}


@pytest.mark.parametrize(
    ("subresource", "status", "verb", "said"),
    [
        ("approval", APPROVED, "approve", "approve"),
        ("status", {"certificate": "eA=="}, "sign", "sign"),
    ],
)
@pytest.mark.parametrize(
    "signer", [pytest.param(SIGNER, id="one"), pytest.param("example.com/*", id="all of a domain")]
)
def test_who_decides_needs_the_right_for_the_signer(
    cluster: Booted, subresource: str, status: Object, verb: str, said: str, signer: str
) -> None:
    cluster.create(REQUESTS, csr())

    def decide() -> Object:
        return cluster.update(
            REQUESTS,
            "c",
            lambda obj: {**obj, "status": status},
            subresource=subresource,
            user=ANN,
        )

    with pytest.raises(StatusError) as error:
        decide()
    assert error.value.message == (
        'certificatesigningrequests.certificates.k8s.io "c" is forbidden: user not permitted to '
        f'{said} requests with signerName "{SIGNER}"'
    )
    allow(cluster, verb, signer)
    assert decide()["status"] == status


def test_nobody_becomes_a_master_by_certificate(cluster: Booted) -> None:
    signer = "kubernetes.io/kube-apiserver-client"
    cluster.create(REQUESTS, csr(signer, request=pem("staff")))
    other = {**csr(signer, request=pem("system:masters")), "metadata": {"name": "d"}}
    assert cluster.refused(REQUESTS, other) == (
        403,
        'certificatesigningrequests.certificates.k8s.io "d" is forbidden: use of '
        "kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
    )
