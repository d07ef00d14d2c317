"""Service accounts ask for tokens, and are believed as long as what those are bound to exists."""

from collections.abc import Callable
from typing import Any

import jwt
import pytest

from berth.cluster.access.service_account_tokens import Bound, in_secret, legacy_claims
from berth.cluster.access.signing_key import BadSignatureError, SigningKey, new_signing_key
from berth.cluster.access.users import AUTHENTICATED
from berth.cluster.resources import Object
from berth.runtime.clock import rfc3339
from tests.cluster.access.secured import IN_DEFAULT, NOW, Secured

CORE = "/api/v1/namespaces/default"
ACCOUNTS = f"{CORE}/serviceaccounts"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ISSUER = "https://kubernetes.default.svc"
ROBOT = "system:serviceaccount:default:robot"


class Scene:
    """A service account called robot, a pod of it on a node, and a Secret."""

    def __init__(self) -> None:
        self.secured = Secured()
        self.uids: dict[str, str] = {}

    async def create(self, path: str, body: Object) -> None:
        created = await self.secured.create(path, body)
        self.uids[path.rpartition("/")[2]] = created["metadata"]["uid"]

    async def issue(self, **spec: Any) -> str:
        """Return a new token of the robot."""
        answer = await self.secured.create(f"{ACCOUNTS}/robot/token", {"spec": spec})
        return str(answer["status"]["token"])

    async def bound(self, kind: str, name: str, **more: str) -> str:
        reference = {"apiVersion": "v1", "kind": kind, "name": name, **more}
        return await self.issue(boundObjectRef=reference)

    async def why_not(self, token: str, **spec: Any) -> str:
        """Return why a TokenReview does not believe it; empty when it does."""
        review = {"spec": {"token": token, **spec}}
        status = (await self.secured.create(REVIEWS, review))["status"]
        assert status.get("authenticated", False) is ("error" not in status)
        return str(status.get("error", ""))

    async def delete(self, path: str) -> None:
        code, answer = await self.secured.ask("DELETE", f"{path}?gracePeriodSeconds=0")
        assert code == 200, answer


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    await scene.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
    await scene.create(f"{CORE}/secrets", {"metadata": {"name": "s"}})
    containers = [{"name": "c", "image": "i"}]
    spec = {"serviceAccountName": "robot", "nodeName": "n1", "containers": containers}
    await scene.create(f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": spec})
    return scene


async def test_a_service_account_gets_a_token(scene: Scene) -> None:
    request = {"spec": {"expirationSeconds": 600}}
    answer = await scene.secured.create(f"{ACCOUNTS}/robot/token", request)
    token = answer["status"]["token"]
    assert answer == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": "robot",
            "namespace": "default",
            "uid": scene.uids["serviceaccounts"],
            "creationTimestamp": rfc3339(NOW),
            "managedFields": answer["metadata"]["managedFields"],
        },
        "spec": {"audiences": [ISSUER], "expirationSeconds": 600, "boundObjectRef": None},
        "status": {"token": token, "expirationTimestamp": rfc3339(NOW + 600)},
    }
    [managed] = answer["metadata"]["managedFields"]
    assert managed["subresource"] == "token"
    assert managed["fieldsV1"] == {"f:spec": {"f:expirationSeconds": {}}}
    claims = jwt.decode(token, options={"verify_signature": False})
    code, answer = await scene.secured.ask("POST", WHOAMI, {}, token=token)
    assert (code, answer["status"]["userInfo"]) == (
        201,
        {
            "username": ROBOT,
            "uid": scene.uids["serviceaccounts"],
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED],
            "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]},
        },
    )
    scene.secured.clock.advance(600)
    assert (await scene.secured.ask("POST", WHOAMI, {}, token=token))[0] == 401
    assert await scene.why_not(token) == (
        "[invalid bearer token, service account token has expired]"
    )


async def test_the_claims_of_a_token(scene: Scene) -> None:
    token = await scene.bound("Pod", "p", uid=scene.uids["pods"])
    claims = jwt.decode(token, options={"verify_signature": False})
    now = int(NOW)
    assert len(claims.pop("jti")) == 36
    assert claims == {
        "aud": [ISSUER],
        "exp": now + 3600,
        "iat": now,
        "iss": ISSUER,
        "kubernetes.io": {
            "namespace": "default",
            "serviceaccount": {"name": "robot", "uid": scene.uids["serviceaccounts"]},
            "pod": {"name": "p", "uid": scene.uids["pods"]},
            "node": {"name": "n1", "uid": scene.uids["nodes"]},
        },
        "nbf": now,
        "sub": ROBOT,
    }


async def test_the_user_of_a_pod_says_which_and_where(scene: Scene) -> None:
    token = await scene.bound("Pod", "p")
    _, answer = await scene.secured.ask("POST", WHOAMI, {}, token=token)
    extra = answer["status"]["userInfo"]["extra"]
    prefix = "authentication.kubernetes.io/"
    assert {key.removeprefix(prefix): value for key, [value] in extra.items()} == {
        "credential-id": extra[f"{prefix}credential-id"][0],
        "pod-name": "p",
        "pod-uid": scene.uids["pods"],
        "node-name": "n1",
        "node-uid": scene.uids["nodes"],
    }


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        pytest.param("Pod", "p", f"{CORE}/pods/p", id="a pod"),
        pytest.param("Secret", "s", f"{CORE}/secrets/s", id="a secret"),
        pytest.param("Node", "n1", "/api/v1/nodes/n1", id="a node"),
    ],
)
async def test_a_token_dies_with_what_it_is_bound_to(
    scene: Scene, kind: str, name: str, path: str
) -> None:
    token = await scene.bound(kind, name)
    assert await scene.why_not(token) == ""
    await scene.delete(path)
    assert await scene.why_not(token) == (
        "[invalid bearer token, service account token has been invalidated]"
    )
    assert (await scene.secured.ask("POST", WHOAMI, {}, token=token))[0] == 401


async def test_another_object_of_the_same_name_is_not_the_one(scene: Scene) -> None:
    token = await scene.bound("Secret", "s")
    first = scene.uids["secrets"]
    await scene.delete(f"{CORE}/secrets/s")
    await scene.create(f"{CORE}/secrets", {"metadata": {"name": "s"}})
    assert await scene.why_not(token) == (
        f"[invalid bearer token, secret UID ({scene.uids['secrets']}) does not match service "
        f"account secret ref claim ({first})]"
    )


async def test_a_token_dies_with_its_account(scene: Scene) -> None:
    token = await scene.issue()
    first = scene.uids["serviceaccounts"]
    await scene.delete(f"{ACCOUNTS}/robot")
    assert await scene.why_not(token) == (
        '[invalid bearer token, serviceaccounts "robot" not found]'
    )
    await scene.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert await scene.why_not(token) == (
        f"[invalid bearer token, service account UID ({scene.uids['serviceaccounts']}) does not "
        f"match claim ({first})]"
    )


async def test_a_token_is_good_for_its_audiences_only(scene: Scene) -> None:
    token = await scene.issue(audiences=["vault"])
    assert (await scene.secured.ask("POST", WHOAMI, {}, token=token))[0] == 401
    assert await scene.why_not(token, audiences=["mail", "vault"]) == ""
    assert await scene.why_not(token) == (
        '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences '
        f'["{ISSUER}"]]'
    )


async def test_a_service_account_has_the_rights_of_its_bindings(scene: Scene) -> None:
    binding = {
        "metadata": {"name": "robot-views"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    }
    await scene.secured.create(f"{IN_DEFAULT}/rolebindings", binding)
    token = await scene.issue()
    codes = [
        (await scene.secured.ask(method, f"/api/v1{path}", {}, token=token))[0]
        for method, path in (
            ("GET", "/namespaces/default/pods"),
            ("POST", "/namespaces/default/pods"),
            ("GET", "/namespaces/default/secrets"),
            ("GET", "/namespaces/kube-system/pods"),
        )
    ]
    assert codes == [200, 403, 403, 403]


OTHER_UID = (
    'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (x) does '
    "not match the UID in record. The object might have been deleted and then recreated"
)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        pytest.param(
            {"spec": {"expirationSeconds": 599}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 599: may not specify a duration less than 10 minutes",
            id="too short a life",
        ),
        pytest.param(
            {"spec": {"expirationSeconds": 2**32 + 1}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            f"value: {2**32 + 1}: may not specify a duration larger than 2^32 seconds",
            id="too long a life",
        ),
        pytest.param(
            {"metadata": {"name": "other"}},
            422,
            'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: '
            '"other": must match the service account name if specified',
            id="the name of another account",
        ),
        pytest.param(
            {"spec": {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment"}}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
            id="bound to a kind that no token can be bound to",
        ),
        pytest.param(
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "no"}}},
            404,
            'pods "no" not found',
            id="bound to what does not exist",
        ),
        pytest.param(
            {
                "spec": {
                    "boundObjectRef": {
                        "apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "x",
                    }
                }
            },
            409,
            OTHER_UID,
            id="bound to an object with another uid",
        ),
    ],
)  # fmt: skip
async def test_requests_that_are_refused(
    scene: Scene, request_: Object, code: int, message: str
) -> None:
    path = f"{ACCOUNTS}/robot/token"
    answered, status = await scene.secured.ask("POST", path, request_)
    assert (answered, status["message"]) == (code, message)


async def test_a_pod_of_another_account(scene: Scene) -> None:
    await scene.create(ACCOUNTS, {"metadata": {"name": "other"}})
    request = {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}}
    code, answer = await scene.secured.ask("POST", f"{ACCOUNTS}/other/token", request)
    assert (code, answer["message"]) == (
        400,
        'cannot bind token for serviceaccount "other" to pod running with different '
        "serviceaccount name.",
    )


async def test_no_token_without_the_account(scene: Scene) -> None:
    code, answer = await scene.secured.ask("POST", f"{ACCOUNTS}/nobody/token", {})
    assert (code, answer["message"]) == (404, 'serviceaccounts "nobody" not found')


async def test_a_token_in_a_secret(scene: Scene) -> None:
    """The Secret must have it, for as long as it is to be good."""
    robot = Bound("robot", scene.uids["serviceaccounts"])
    token = scene.secured.key.sign(legacy_claims("default", "s", robot))
    assert await scene.why_not(token) == (
        "[invalid bearer token, service account token does not match server's copy]"
    )
    data = {"data": {"token": in_secret(token)}}
    code, _ = await scene.secured.ask(
        "PUT", f"{CORE}/secrets/s", {"metadata": {"name": "s"}, **data}
    )
    assert code == 200
    _, answer = await scene.secured.ask("POST", WHOAMI, {}, token=token)
    assert answer["status"]["userInfo"]["username"] == ROBOT
    await scene.delete(f"{CORE}/secrets/s")
    assert await scene.why_not(token) == (
        "[invalid bearer token, service account token has been invalidated]"
    )


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda claims: SigningKey(new_signing_key()).sign(claims), id="another key"),
        pytest.param(lambda claims: jwt.encode(claims, "", "none"), id="no signature"),
        pytest.param(lambda claims: jwt.encode(claims, "s" * 32, "HS256"), id="a shared secret"),
    ],
)
async def test_forged_tokens(scene: Scene, forge: Callable[[Any], str]) -> None:
    claims = jwt.decode(await scene.issue(), options={"verify_signature": False})
    token = forge(claims)
    assert await scene.why_not(token) == "invalid bearer token"
    with pytest.raises(BadSignatureError):
        scene.secured.key.verify(token)


async def test_a_token_of_another_issuer(scene: Scene) -> None:
    token = scene.secured.key.sign({"iss": "https://else.where", "sub": ROBOT})
    assert await scene.why_not(token) == "invalid bearer token"


def test_only_keys_of_the_right_kind_sign() -> None:
    with pytest.raises(ValueError, match="PEM"):
        SigningKey(b"nonsense")


async def test_others_verify_tokens_by_the_published_keys(scene: Scene) -> None:
    token = await scene.issue(audiences=["vault"])
    robot = await scene.issue()
    path = "/.well-known/openid-configuration"
    code, configuration = await scene.secured.ask("GET", path, token=robot)
    assert (code, configuration["issuer"]) == (200, ISSUER)
    assert configuration["jwks_uri"].endswith("/openid/v1/jwks")
    code, keys = await scene.secured.ask("GET", "/openid/v1/jwks", token=robot)
    assert code == 200
    [key] = jwt.PyJWKSet.from_dict(keys).keys
    assert key.key_id == jwt.get_unverified_header(token)["kid"]
    claims = jwt.decode(
        token, key, ["ES256"], {"verify_exp": False}, audience="vault", issuer=ISSUER
    )
    assert claims["sub"] == ROBOT


async def test_nobody_else_reads_the_keys(scene: Scene) -> None:
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        code, answer = await scene.secured.ask("GET", path, token="")
        assert (code, answer["message"]) == (
            403,
            f'forbidden: User "system:anonymous" cannot get path "{path}"',
        )
