"""The first roles: who may do what in a new cluster."""

import pytest

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import Authorizer
from berth.cluster.access.users import (
    ANONYMOUS,
    AUTHENTICATED,
    CONTROLLER_MANAGER,
    KUBELETS,
    SCHEDULER,
    User,
    service_account,
)
from berth.cluster.features import DEFAULT_FEATURES
from berth.cluster.kinds.gates import GENERIC_WORKLOAD
from berth.cluster.resources import Object
from tests.cluster.access.secured import ALICE, IN_DEFAULT, RBAC, Secured

LEASES = "coordination.k8s.io"
CLAIMS = "resource.k8s.io"
SCHEDULING = "scheduling.k8s.io"


@pytest.fixture(scope="module")
def authorizer() -> Authorizer:
    return Authorizer(Secured().store)


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        (Attributes("watch", resource="pods"), True),
        (Attributes("delete", resource="pods", namespace="a"), True),
        (Attributes("create", resource="pods", subresource="binding", namespace="a"), True),
        (Attributes("patch", resource="pods", subresource="status", namespace="a"), True),
        (Attributes("create", resource="pods", namespace="a"), False),
        (Attributes("patch", resource="pods", namespace="a"), False),
        (Attributes("create", resource="pods", subresource="eviction", namespace="a"), False),
        (Attributes("patch", resource="nodes"), False),
        (Attributes("list", resource="secrets"), False),
        (Attributes("list", "storage.k8s.io", "storageclasses"), True),
        (Attributes("patch", resource="persistentvolumeclaims", namespace="a"), True),
        (Attributes("update", CLAIMS, "resourceclaims", "status", "a"), True),
        (Attributes("create", LEASES, "leases", namespace="a"), True),
        (Attributes("update", LEASES, "leases", namespace="a", name="kube-scheduler"), True),
        (Attributes("update", LEASES, "leases", namespace="a", name="other"), False),
        (Attributes("update", LEASES, "leases", namespace="kube-system", name="other"), True),
        (Attributes("list", "policy", "poddisruptionbudgets"), True),
        (Attributes("patch", "policy", "poddisruptionbudgets", namespace="a"), False),
        (Attributes("create", "authentication.k8s.io", "tokenreviews"), True),
        (
            Attributes(
                "get",
                resource="configmaps",
                namespace="kube-system",
                name="extension-apiserver-authentication",
            ),
            True,
        ),
        (Attributes("get", resource="configmaps", namespace="kube-system", name="x"), False),
    ],
    ids=lambda each: " ".join(filter(None, each[:5])) if isinstance(each, tuple) else "",
)
def test_the_scheduler(authorizer: Authorizer, wanted: Attributes, allowed: bool) -> None:
    """Spec §11.4."""
    assert authorizer.decide(SCHEDULER, wanted).allowed is allowed


def test_a_scheduler_in_a_pod_locks_its_lease(authorizer: Authorizer) -> None:
    pod = service_account("kube-system", "kube-scheduler")
    lease = Attributes("update", LEASES, "leases", namespace="kube-system", name="kube-scheduler")
    assert authorizer.decide(pod, lease).allowed
    assert not authorizer.decide(pod, lease._replace(namespace="default")).allowed


@pytest.mark.parametrize(
    ("user", "verbs"),
    [
        pytest.param(CONTROLLER_MANAGER, {"create", "delete", "get"}, id="controllers"),
        pytest.param(KUBELETS, {"create", "delete", "get"}, id="kubelets: mirror pods"),
        pytest.param(ALICE, set(), id="a user"),
        pytest.param(ANONYMOUS, set(), id="nobody"),
    ],
)
def test_pods(authorizer: Authorizer, user: User, verbs: set[str]) -> None:
    wanted = Attributes("", resource="pods", namespace="a")
    assert {
        verb
        for verb in ("create", "delete", "get", "bind")
        if authorizer.decide(user, wanted._replace(verb=verb)).allowed
    } == verbs


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        pytest.param("view", "get pods, get groups", id="view"),
        pytest.param(
            "edit", "get pods, create pods, get secrets, get groups, create groups", id="edit"
        ),
        pytest.param(
            "admin",
            "get pods, create pods, get secrets, create roles, get groups, create groups",
            id="admin",
        ),
    ],
)
async def test_roles_for_users(role: str, allowed: str) -> None:
    secured = Secured(features={*DEFAULT_FEATURES, GENERIC_WORKLOAD})
    binding: Object = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "alice"}],
    }
    await secured.create(f"{IN_DEFAULT}/rolebindings", binding)
    decide = Authorizer(secured.store).decide
    asked = {
        "get pods": Attributes("get", resource="pods", namespace="default"),
        "create pods": Attributes("create", resource="pods", namespace="default"),
        "get secrets": Attributes("get", resource="secrets", namespace="default"),
        "create roles": Attributes(
            "create", "rbac.authorization.k8s.io", "roles", namespace="default"
        ),
        "get groups": Attributes("get", SCHEDULING, "podgroups", namespace="default"),
        "create groups": Attributes("create", SCHEDULING, "podgroups", namespace="default"),
        "get nodes": Attributes("get", resource="nodes"),
    }
    user = User("alice", (AUTHENTICATED,))
    assert ", ".join(what for what, a in asked.items() if decide(user, a).allowed) == allowed


async def test_what_delegates_read_of_how_requests_are_authenticated() -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    code, found = await Secured().ask("GET", path, user=SCHEDULER)
    assert (code, found.get("data")) == (200, None)


async def test_the_first_roles_can_be_replaced() -> None:
    secured = Secured()
    path = f"{RBAC}/clusterroles/system:kube-scheduler"
    _, found = await secured.ask("GET", path)
    found["rules"] = []
    assert (await secured.ask("PUT", path, found))[0] == 200
    assert (await secured.ask("GET", "/api/v1/nodes", user=SCHEDULER))[0] == 403
