"""401 and 403: who is let in, in the words of kube-apiserver."""

from typing import Any

import pytest

from berth.cluster.access.users import ADMIN, AUTHENTICATED, SCHEDULER, User
from tests.cluster.access.secured import ALICE, Secured, rule, status

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def secured() -> Secured:
    return Secured()


async def test_a_token_that_nobody_has_is_a_401(secured: Secured) -> None:
    want = status(401, "Unauthorized", "Unauthorized")
    for path in (PODS, "/healthz", "/no/such/path"):
        assert await secured.ask("GET", path, token="nonsense") == (401, want)


async def test_another_scheme_says_nothing(secured: Secured) -> None:
    code, answer = await secured.ask("GET", PODS, token="", headers=[("authorization", "Basic x")])
    assert (code, answer["message"]) == (
        403,
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" '
        'in the namespace "default"',
    )


@pytest.mark.parametrize(
    ("method", "path", "message", "details"),
    [
        pytest.param(
            "GET",
            "/api/v1/pods",
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" '
            "at the cluster scope",
            {"kind": "pods"},
            id="at the cluster scope",
        ),
        pytest.param(
            "GET",
            PODS,
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" '
            'in the namespace "default"',
            {"kind": "pods"},
            id="in a namespace",
        ),
        pytest.param(
            "DELETE",
            f"{DEPLOYMENTS}/web",
            'deployments.apps "web" is forbidden: User "alice" cannot delete resource '
            '"deployments" in API group "apps" in the namespace "default"',
            {"name": "web", "group": "apps", "kind": "deployments"},
            id="an object, in a group",
        ),
        pytest.param(
            "POST",
            f"{PODS}/p/binding",
            'pods "p" is forbidden: User "alice" cannot create resource "pods/binding" '
            'in API group "" in the namespace "default"',
            {"name": "p", "kind": "pods"},
            id="a subresource",
        ),
        pytest.param(
            "GET",
            "/apis/example.com/v1/foos",
            'foos.example.com is forbidden: User "alice" cannot list resource "foos" '
            'in API group "example.com" at the cluster scope',
            {"group": "example.com", "kind": "foos"},
            id="what is not served at all",
        ),
        pytest.param(
            "GET",
            "/metrics",
            'forbidden: User "alice" cannot get path "/metrics"',
            {},
            id="a path",
        ),
    ],
)
async def test_refusals(
    secured: Secured, method: str, path: str, message: str, details: dict[str, str]
) -> None:
    want = status(403, "Forbidden", message, **details)
    assert await secured.ask(method, path, {}, user=ALICE) == (403, want)


@pytest.mark.parametrize(
    ("path", "anonymous", "alice"),
    [
        pytest.param("/healthz", 200, 200, id="health"),
        pytest.param("/readyz", 200, 200, id="readiness"),
        pytest.param("/version", 200, 200, id="version"),
        pytest.param("/api", 403, 200, id="discovery"),
        pytest.param("/apis/apps/v1", 403, 200, id="discovery of a group"),
        pytest.param("/openapi/v3", 403, 200, id="OpenAPI"),
        pytest.param("/no/such/path", 403, 403, id="nothing"),
        pytest.param("/api/v1/nodes", 403, 403, id="nodes"),
    ],
)
async def test_what_everybody_may_read(
    secured: Secured, path: str, anonymous: int, alice: int
) -> None:
    codes = [
        (await secured.ask("GET", path, token=""))[0],
        (await secured.ask("GET", path, user=ALICE))[0],
    ]
    assert codes == [anonymous, alice]


async def test_rights_count_from_the_next_request_on(secured: Secured) -> None:
    assert (await secured.ask("GET", PODS, user=ALICE))[0] == 403
    await secured.grant("alice", rule("pods", "list"), namespace="default")
    assert (await secured.ask("GET", PODS, user=ALICE))[0] == 200
    assert (await secured.ask("GET", "/api/v1/pods", user=ALICE))[0] == 403
    assert (await secured.ask("GET", f"{PODS}?watch=1", user=ALICE))[0] == 403


async def test_the_observer_sees_what_was_asked_and_the_rule(secured: Secured) -> None:
    await secured.ask("GET", "/api/v1/nodes", user=SCHEDULER)
    name, wanted, decision = secured.decisions[-1]
    assert (name, wanted.verb, wanted.resource) == ("system:kube-scheduler", "list", "nodes")
    assert decision.reason == (
        'RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of ClusterRole '
        '"system:kube-scheduler" to User "system:kube-scheduler"'
    )
    assert decision.rule is not None
    assert decision.rule.resources == ("nodes",)


async def whoami(secured: Secured, *headers: tuple[str, str], user: User = ADMIN) -> Any:
    code, answer = await secured.ask("POST", WHOAMI, {}, user=user, headers=list(headers))
    return answer["status"]["userInfo"] if code == 201 else answer["message"]


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param(
            [("Impersonate-User", "alice")],
            {"username": "alice", "groups": [AUTHENTICATED]},
            id="a user",
        ),
        pytest.param(
            [
                ("Impersonate-User", "alice"),
                ("Impersonate-Group", "devs"),
                ("Impersonate-Group", "ops"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Extra-acme.com%2Fproject", "x"),
            ],
            {
                "username": "alice",
                "uid": "7",
                "groups": ["devs", "ops", AUTHENTICATED],
                "extra": {"acme.com/project": ["x"]},
            },
            id="everything",
        ),
        pytest.param(
            [("Impersonate-User", "system:serviceaccount:web:robot")],
            {
                "username": "system:serviceaccount:web:robot",
                "groups": [
                    "system:serviceaccounts",
                    "system:serviceaccounts:web",
                    AUTHENTICATED,
                ],
            },
            id="a service account has its groups",
        ),
        pytest.param(
            [("Impersonate-User", "system:anonymous")],
            'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot '
            'create resource "selfsubjectreviews" in API group "authentication.k8s.io" '
            "at the cluster scope",
            id="nobody",
        ),
        pytest.param(
            [("Impersonate-Group", "devs")],
            "requested Impersonate-Group without Impersonate-User",
            id="a group without a user",
        ),
    ],
)
async def test_impersonation(
    secured: Secured, headers: list[tuple[str, str]], want: object
) -> None:
    assert await whoami(secured, *headers) == want


async def test_who_impersonates_needs_the_right_to_each_part(secured: Secured) -> None:
    await secured.grant("alice", rule("users", "impersonate", names="bob"))
    as_bob = ("Impersonate-User", "bob")
    bob = {"username": "bob", "groups": [AUTHENTICATED]}
    assert await whoami(secured, as_bob, user=ALICE) == bob
    assert await whoami(secured, as_bob, ("Impersonate-Group", "devs"), user=ALICE) == (
        'groups "devs" is forbidden: User "alice" cannot impersonate resource "groups" '
        'in API group "" at the cluster scope'
    )
    robot = ("Impersonate-User", "system:serviceaccount:web:robot")
    assert await whoami(secured, robot, user=ALICE) == (
        'serviceaccounts "robot" is forbidden: User "alice" cannot impersonate resource '
        '"serviceaccounts" in API group "" in the namespace "web"'
    )
    assert await whoami(secured, as_bob, ("Impersonate-Uid", "1"), user=ALICE) == (
        'uids.authentication.k8s.io "1" is forbidden: User "alice" cannot impersonate resource '
        '"uids" in API group "authentication.k8s.io" at the cluster scope'
    )
    assert await whoami(secured, as_bob, ("Impersonate-Extra-a", "x"), user=ALICE) == (
        'userextras.authentication.k8s.io "x" is forbidden: User "alice" cannot impersonate '
        'resource "userextras/a" in API group "authentication.k8s.io" at the cluster scope'
    )


@pytest.mark.parametrize("subresource", ["attach", "exec", "portforward"])
async def test_a_web_socket_needs_the_right_to_create(secured: Secured, subresource: str) -> None:
    await secured.grant("alice", rule(f"pods/{subresource}", "get"), namespace="default")
    code, answer = await secured.ask("GET", f"{PODS}/p/{subresource}", user=ALICE)
    assert (code, answer["message"]) == (
        403,
        f'pods "p" is forbidden: User "alice" cannot create resource "pods/{subresource}" in API '
        'group "" in the namespace "default"',
    )
