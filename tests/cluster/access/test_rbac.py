"""The authorizer: bindings, namespaces, what it remembers and when it forgets."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    UNCONDITIONAL,
    Authorizer,
    Decision,
)
from berth.cluster.access.rules import Rule, on, on_paths
from berth.cluster.access.users import ADMIN, ANONYMOUS, User, service_account
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from tests.cluster.access.test_rules import RULES, WANTED

ALICE = User("alice", ("devs",))
LIST = Attributes("list", resource="pods", namespace="web")
LIST_ALL = Attributes("list", resource="pods")
READS = on("pods", "get list")


def role(store: Store, name: str, *rules: Rule, namespace: str = "", **metadata: object) -> None:
    store.create(
        ROLES if namespace else CLUSTER_ROLES,
        {
            "metadata": {"name": name, "namespace": namespace, **metadata},
            "rules": [rule.as_object() for rule in rules],
        },
    )


def bind(store: Store, role: str, *subjects: str, namespace: str = "", kind: str = "") -> None:
    """Bind a role to ``User alice``, ``Group devs``, ``ServiceAccount robot web``."""
    words = [subject.split() for subject in subjects]
    store.create(
        ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS,
        {
            "metadata": {"name": f"b-{role}", "namespace": namespace},
            "roleRef": {"kind": kind or ("Role" if namespace else "ClusterRole"), "name": role},
            "subjects": [
                {"kind": kind, "name": name, **({"namespace": rest[0]} if rest else {})}
                for kind, name, *rest in words
            ],
        },
    )


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        pytest.param("User alice", ALICE, id="a user"),
        pytest.param("Group devs", ALICE, id="a group"),
        pytest.param("ServiceAccount robot web", service_account("web", "robot"), id="an account"),
        pytest.param(
            "Group system:serviceaccounts:web",
            service_account("web", "robot"),
            id="all accounts of a namespace",
        ),
        pytest.param("Group system:unauthenticated", ANONYMOUS, id="those without a token"),
    ],
)
def test_a_cluster_role_binding_counts_everywhere(store: Store, subject: str, user: User) -> None:
    role(store, "reader", READS)
    bind(store, "reader", subject)
    authorizer = Authorizer(store)
    assert authorizer.decide(user, LIST).allowed
    assert authorizer.decide(user, LIST_ALL).allowed
    assert not authorizer.decide(User("mallory", ("group",)), LIST).allowed


@pytest.mark.parametrize(
    "kind", [pytest.param("Role", id="a role"), pytest.param("ClusterRole", id="a cluster role")]
)
def test_a_role_binding_counts_in_its_namespace(store: Store, kind: str) -> None:
    role(store, "reader", READS, on_paths("*", "*"), namespace="web" if kind == "Role" else "")
    bind(store, "reader", "User alice", namespace="web", kind=kind)
    authorizer = Authorizer(store)
    assert authorizer.decide(ALICE, LIST).allowed
    assert not authorizer.decide(ALICE, LIST_ALL).allowed
    assert not authorizer.decide(ALICE, LIST._replace(namespace="shop")).allowed
    assert not authorizer.decide(ALICE, Attributes("get", path="/metrics")).allowed


def test_the_reason_names_the_binding(store: Store) -> None:
    role(store, "reader", READS)
    role(store, "binder", on("pods/binding", "create"), namespace="web")
    bind(store, "reader", "Group devs")
    bind(store, "binder", "ServiceAccount robot web", namespace="web")
    authorizer = Authorizer(store)
    assert authorizer.decide(ALICE, LIST) == Decision(
        allowed=True,
        reason='RBAC: allowed by ClusterRoleBinding "b-reader" of ClusterRole "reader" '
        'to Group "devs"',
        rule=READS,
    )
    bound = Attributes("create", resource="pods", subresource="binding", namespace="web", name="p")
    assert authorizer.decide(service_account("web", "robot"), bound).reason == (
        'RBAC: allowed by RoleBinding "b-binder/web" of Role "binder" to ServiceAccount "robot/web"'
    )


def test_masters_need_no_role(store: Store) -> None:
    assert Authorizer(store).decide(ADMIN, LIST) == UNCONDITIONAL


def test_a_binding_to_a_role_that_is_not_there_gives_nothing(store: Store) -> None:
    bind(store, "reader", "User alice")
    authorizer = Authorizer(store)
    assert not authorizer.decide(ALICE, LIST).allowed
    role(store, "reader", READS)
    assert authorizer.decide(ALICE, LIST).allowed


def test_what_is_taken_away_is_gone_at_once(store: Store) -> None:
    role(store, "reader", READS)
    bind(store, "reader", "User alice")
    authorizer = Authorizer(store)
    assert authorizer.decide(ALICE, LIST).allowed
    store.delete(CLUSTER_ROLE_BINDINGS, "", "b-reader")
    assert not authorizer.decide(ALICE, LIST).allowed


def test_names_matter_where_rules_have_names(store: Store) -> None:
    role(store, "one", on("pods", "get", names=["p"]), on("nodes", "get"))
    bind(store, "one", "User alice")
    authorizer = Authorizer(store)
    wanted = Attributes("get", resource="pods", namespace="web")
    names = {name: authorizer.decide(ALICE, wanted._replace(name=name)).allowed for name in "pqp"}
    assert names == {"p": True, "q": False}
    assert authorizer.decide(ALICE, Attributes("get", resource="nodes", name="n")).allowed


@pytest.mark.parametrize("pattern", ["*", "*/status"])
def test_names_matter_where_a_wildcard_has_names(store: Store, pattern: str) -> None:
    role(store, "one", on(pattern, "get", names=["p"]))
    bind(store, "one", "User alice")
    authorizer = Authorizer(store)
    wanted = Attributes("get", resource="pods", subresource="status", namespace="web")
    assert [authorizer.decide(ALICE, wanted._replace(name=n)).allowed for n in "qp"] == [
        False,
        True,
    ]


def test_an_aggregated_role_has_the_rules_of_others_not_its_own(store: Store) -> None:
    role(store, "pods-part", READS, labels={"to-view": "true"})
    store.create(
        CLUSTER_ROLES,
        {
            "metadata": {"name": "view"},
            "rules": [on("nodes", "list").as_object()],
            "aggregationRule": {
                "clusterRoleSelectors": [
                    {"matchLabels": {"to-view": "true"}},
                    {"matchExpressions": [{"key": "to-view", "operator": "Exists"}]},
                ]
            },
        },
    )
    bind(store, "view", "User alice")
    authorizer = Authorizer(store)
    assert authorizer.decide(ALICE, LIST).allowed
    assert not authorizer.decide(ALICE, Attributes("list", resource="nodes")).allowed
    assert authorizer.rules_of(ALICE, "web") == [READS]


def test_the_observer_hears_every_decision(store: Store) -> None:
    role(store, "reader", READS)
    bind(store, "reader", "User alice")
    heard: list[tuple[str, str, bool]] = []
    authorizer = Authorizer(
        store, observer=lambda user, wanted, d: heard.append((user.name, wanted.verb, d.allowed))
    )
    for verb in ("list", "list", "delete"):
        authorizer.authorize(ALICE, LIST._replace(verb=verb))
    authorizer.authorize(ADMIN, LIST)
    assert heard == [
        ("alice", "list", True),
        ("alice", "list", True),
        ("alice", "delete", False),
        ("berth-admin", "list", True),
    ]


@given(st.lists(RULES, max_size=3), RULES, st.lists(WANTED, min_size=1, max_size=5))
def test_a_rule_more_never_takes_a_right_away(
    rules: Sequence[Rule], added: Rule, wanted: Sequence[Attributes]
) -> None:
    store = Store()
    role(store, "some", *rules)
    bind(store, "some", "User alice")
    authorizer = Authorizer(store)
    before = [authorizer.decide(ALICE, each).allowed for each in wanted]
    assert before == [any(rule.allows(each) for rule in rules) for each in wanted]
    role(store, "more", added)
    bind(store, "more", "User alice")
    after = [authorizer.decide(ALICE, each).allowed for each in wanted]
    assert after == [had or added.allows(each) for had, each in zip(before, wanted, strict=True)]


@pytest.mark.parametrize(
    "bad",
    [
        (ROLES, {"rules": [{"verbs": 1}]}),
        (CLUSTER_ROLES, {"rules": "all"}),
        (CLUSTER_ROLES, {"aggregationRule": {"clusterRoleSelectors": [1]}}),
        (ROLE_BINDINGS, {"roleRef": []}),
        (CLUSTER_ROLE_BINDINGS, {"subjects": [{"kind": 1}]}),
    ],
)
def test_what_cannot_be_read_grants_nothing_and_stops_nothing(
    store: Store, bad: tuple[str, Object], caplog: pytest.LogCaptureFixture
) -> None:
    """A server of another version, or a bug of an earlier one, has stored it."""
    role(store, "reader", READS)
    bind(store, "reader", "User alice")
    authorizer = Authorizer(store)
    assert authorizer.decide(ALICE, LIST).allowed
    storage_key, parts = bad
    store.create(storage_key, {"metadata": {"name": "bad", "namespace": "web"}, **parts})
    assert authorizer.decide(ALICE, LIST).allowed
    [said] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (vars(said)["kind"], vars(said)["object"]) == (storage_key, "web/bad")
    store.delete(CLUSTER_ROLE_BINDINGS, "", "b-reader")
    assert not authorizer.decide(ALICE, LIST).allowed


def test_nulls_that_were_stored_are_read_as_nothing(store: Store) -> None:
    rules = [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": None}]
    store.create(CLUSTER_ROLES, {"metadata": {"name": "reader"}, "rules": rules})
    bind(store, "reader", "User alice")
    assert Authorizer(store).decide(ALICE, LIST).allowed
