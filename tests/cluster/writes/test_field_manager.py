"""Who manages what after updates and applied configurations, and which of those are refused."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.errors import MOST_CAUSES, StatusError
from berth.cluster.kinds.builtin import RESOURCES, find
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object
from berth.cluster.writes.field_manager import FieldManager, unchanged
from berth.cluster.writes.managed_fields import field_sets

CONFIG_MAPS = find("", "v1", "configmaps")
DEPLOYMENTS = find("apps", "v1", "deployments")
V1, V2 = (find("autoscaling", version, "horizontalpodautoscalers") for version in ("v1", "v2"))
MANAGER = FieldManager(Registry(RESOURCES).find)
T1, T2, T3 = (f"2026-11-20T13:00:0{n}Z" for n in (1, 2, 3))
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Managers = dict[str, Any]


def config(**data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        **({"data": data} if data else {}),
    }


def apply(
    live: Object | None,
    applied: Object,
    *,
    manager: str = "me",
    force: bool = False,
    now: str = T1,
    resource: Any = CONFIG_MAPS,
) -> Object:
    return MANAGER.apply(
        live or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        applied,
        resource=resource,
        subresource="",
        manager=manager,
        force=force,
        now=now,
    )


def update(
    live: Object | None,
    new: Object,
    *,
    manager: str = "me",
    now: str = T1,
    resource: Any = CONFIG_MAPS,
    subresource: str = "",
) -> Object:
    MANAGER.update(live, new, resource=resource, subresource=subresource, manager=manager, now=now)
    return new


def managers(obj: Object) -> Managers:
    """Return the fields by manager and operation, written as messages write them."""
    return {
        f"{field['manager']} {field['operation']}": [
            field_sets.path_text(path) for path in field_sets.paths_of(field["fieldsV1"])
        ]
        for field in obj["metadata"].get("managedFields", [])
    }


def test_who_creates_manages_all_but_the_identity() -> None:
    created = update(None, config(a="1"))
    assert managers(created) == {"me Update": [".data", ".data.a"]}


def test_fields_are_written_in_order() -> None:
    created = update(None, {**config(b="1", a="1"), "metadata": {"labels": {"z": "", "y": ""}}})
    changed = {**config(b="2", a="1", c="1", aa="1"), "metadata": {"labels": {"x": ""}}}
    applied = apply(update(created, changed), config(z="1", d="1"), manager="other")
    assert [json.dumps(each["fieldsV1"]) for each in applied["metadata"]["managedFields"]] == [
        '{"f:data": {"f:d": {}, "f:z": {}}}',
        '{"f:data": {".": {}, "f:a": {}, "f:aa": {}, "f:b": {}, "f:c": {}}, '
        '"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}',
    ]


def test_who_updates_manages_what_is_new_or_other() -> None:
    created = update(None, config(a="1", b="1"), manager="first")
    updated = update(created, config(a="2", c="1"), manager="second")
    assert managers(updated) == {"first Update": [".data"], "second Update": [".data.a", ".data.c"]}


def test_an_update_that_changes_nothing_has_no_manager() -> None:
    created = update(None, config(a="1"), manager="first")
    assert update(created, config(a="1"), manager="second", now=T2) == created


def test_who_removes_the_last_field_of_a_manager_removes_it() -> None:
    live = update(update(None, config()), config(a="1"), manager="first")
    assert managers(update(live, config(), manager="second")) == {}


def test_the_status_is_not_managed_by_writes_to_the_object() -> None:
    new = {"metadata": {"name": "d"}, "spec": {"replicas": 1}, "status": {"replicas": 3}}
    created = update(None, new, resource=DEPLOYMENTS)
    assert managers(created) == {"me Update": [".spec.replicas"]}


def test_the_status_is_managed_by_writes_to_it() -> None:
    live: Object = {"metadata": {"name": "d"}, "spec": {"replicas": 1}}
    new = {"metadata": {"name": "d", "labels": {"a": "b"}}, "status": {"replicas": 3}}
    updated = update(live, new, resource=DEPLOYMENTS, subresource="status")
    (entry,) = updated["metadata"]["managedFields"]
    assert (entry["subresource"], managers(updated)) == (
        "status",
        {"me Update": [".metadata.labels", ".metadata.labels.a", ".status.replicas"]},
    )


def test_only_the_newest_updates_have_entries_of_their_own() -> None:
    obj = update(None, config())
    for number in range(12):
        data = {**obj.get("data", {}), f"key-{number}": ""}
        changed = {**obj, "metadata": dict(obj["metadata"]), "data": data}
        now = f"2026-11-20T13:00:{number:02}Z"
        obj = update(obj, changed, manager=f"m{number:02}", now=now)
    found = managers(obj)
    assert len(found) == 10
    assert found["ancient-changes Update"] == [".data", *(f".data.key-{n}" for n in range(3))]
    times = [field["time"] for field in obj["metadata"]["managedFields"]]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param([{}], {}, id="one empty entry resets them"),
        pytest.param([], {"first Update": [".data", ".data.a"]}, id="an empty list does not"),
        pytest.param(
            [{"manager": "x", "operation": "Dance", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
            {"first Update": [".data", ".data.a"]},
            id="malformed ones are ignored",
        ),
        pytest.param(
            [
                {
                    "manager": "x",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {"f:a": {".": {}}}},
                }
            ],
            {"x Apply": [".data.a"]},
            id="well-formed ones count",
        ),
    ],
)
def test_managed_fields_in_a_request(said: Any, want: Managers) -> None:
    live = update(None, config(a="1"), manager="first")
    new = config(a="1")
    new["metadata"]["managedFields"] = said
    assert managers(update(live, new, manager="second")) == want


def test_managed_fields_in_a_write_to_a_subresource_do_not_count() -> None:
    live = update(None, config(a="1"), manager="first")
    new = config(a="1")
    new["metadata"]["managedFields"] = [{}]
    assert update(live, new, manager="second", subresource="status") == live


def test_who_applies_manages_what_is_applied() -> None:
    live = update(None, config(a="1"), manager="first")
    applied = apply(live, config(a="1", b="2"), now=T2)
    assert applied["data"] == {"a": "1", "b": "2"}
    assert managers(applied) == {
        "me Apply": [".data.a", ".data.b"],
        "first Update": [".data", ".data.a"],
    }


def test_what_is_applied_no_longer_goes() -> None:
    live = apply(apply(None, config(a="1", b="2")), config(c="3"), manager="other")
    applied = apply(live, config(a="1"))
    assert applied["data"] == {"a": "1", "c": "3"}
    assert managers(applied) == {"me Apply": [".data.a"], "other Apply": [".data.c"]}


def test_what_another_one_applies_too_stays() -> None:
    live = apply(apply(None, config(a="1", b="2")), config(b="2"), manager="other")
    assert apply(live, config(a="1"))["data"] == {"a": "1", "b": "2"}


def test_a_manager_that_applies_nothing_any_more_is_gone() -> None:
    applied = apply(apply(None, config(a="1")), config())
    assert ("data" in applied, managers(applied)) == (False, {})


def test_another_value_is_a_conflict() -> None:
    live = update(None, config(a="1"), manager="first")
    with pytest.raises(StatusError) as error:
        apply(live, config(a="2"))
    assert error.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "first" using v1: .data.a',
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "first" using v1',
                    "field": ".data.a",
                }
            ]
        },
        "code": 409,
    }


def test_several_conflicts_are_told_by_manager() -> None:
    live = apply(update(None, config(a="1", b="1"), manager="z"), config(c="1"), manager="y")
    live["metadata"]["managedFields"][1]["subresource"] = "scale"
    with pytest.raises(StatusError) as error:
        apply(live, config(a="2", b="2", c="2"))
    assert error.value.message == (
        'Apply failed with 3 conflicts: conflicts with "y":\n- .data.c\n'
        'conflicts with "z" with subresource "scale" using v1:\n- .data.a\n- .data.b'
    )


def test_only_so_many_conflicts_are_told() -> None:
    many = [f"key-{number:05}" for number in range(5 * MOST_CAUSES)]
    live = update(None, config(**dict.fromkeys(many, "1")), manager="first")
    with pytest.raises(StatusError) as error:
        apply(live, config(**dict.fromkeys(many, "2")))
    assert len((error.value.details or {})["causes"]) == MOST_CAUSES
    assert error.value.message.startswith("Apply failed with 500 conflicts: conflicts with")
    assert error.value.message.endswith("- .data.key-00099\nand 400 more")


def test_who_forces_takes_the_fields() -> None:
    live = update(None, config(a="1", b="1"), manager="first")
    applied = apply(live, config(a="2"), force=True)
    assert applied["data"] == {"a": "2", "b": "1"}
    assert managers(applied) == {"me Apply": [".data.a"], "first Update": [".data", ".data.b"]}


def test_the_same_again_changes_nothing_not_even_a_time() -> None:
    applied = apply(None, config(a="1"), now=T1)
    assert apply(applied, config(a="1"), now=T2) == applied


def test_what_differs_until_defaults_are_filled_in_is_the_same() -> None:
    live = apply(None, config(a="1"), now=T1)
    again = json.loads(json.dumps(live))
    again["metadata"]["managedFields"][0]["time"] = T2
    assert unchanged(again, live)
    assert not unchanged({**again, "data": {"a": "2"}}, live)
    again["metadata"]["managedFields"][0]["fieldsV1"] = {}
    assert not unchanged(again, live)


def test_a_version_that_is_served_no_longer_manages_nothing() -> None:
    live = update(None, config(a="1"), manager="first")
    live["metadata"]["managedFields"][0]["apiVersion"] = "v1beta1"
    assert managers(apply(live, config(a="2"))) == {"me Apply": [".data.a"]}


def autoscaler(version: str, **spec: Any) -> Object:
    kind = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": "h", "namespace": "default"}, "spec": spec}


def test_versions_of_a_kind_manage_the_same_fields() -> None:
    live = update(None, autoscaler("v1", maxReplicas=3), manager="old", resource=V1)
    seen = {**V2.from_storage(V1.to_storage(live)), "kind": live["kind"]}
    seen["apiVersion"] = "autoscaling/v2"
    with pytest.raises(
        StatusError, match=re.escape('conflict with "old" using autoscaling/v1: .spec.maxRep')
    ):
        apply(seen, autoscaler("v2", maxReplicas=5), resource=V2)


@pytest.mark.parametrize(
    ("applied", "code", "message"),
    [
        pytest.param(
            {**config(), "kind": "Secret"},
            400,
            "invalid object type: v1, Kind=Secret",
            id="another kind",
        ),
        pytest.param(
            {**config(), "apiVersion": "v2"},
            400,
            "invalid object type: v2, Kind=ConfigMap",
            id="another version",
        ),
        pytest.param({}, 400, "invalid object type: /, Kind=", id="no type"),
        pytest.param(
            {**config(), "metadata": {"name": "c", "managedFields": []}},
            400,
            "metadata.managedFields must be nil",
            id="managed fields",
        ),
        pytest.param(
            {**config(), "dat": {}},
            500,
            "failed to create typed patch object (default/c; /v1, Kind=ConfigMap): "
            ".dat: field not declared in schema",
            id="an unknown field",
        ),
        pytest.param(
            {**config(), "data": {"a": 1}, "immutable": "no"},
            500,
            "failed to create typed patch object (default/c; /v1, Kind=ConfigMap): errors:\n"
            "  .data.a: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .immutable: expected boolean, got &{no}",
            id="values of other types",
        ),
        pytest.param(
            {**config(), "metadata": {"name": "c", "generation": 1.5}},
            500,
            "failed to convert new typed object (/c; /v1, Kind=ConfigMap) to object: json: "
            "cannot unmarshal number 1.5 into Go struct field ObjectMeta.metadata.generation "
            "of type int64",
            id="a value that the type cannot hold",
        ),
    ],
)
def test_configurations_that_do_not_fit(applied: Object, code: int, message: str) -> None:
    with pytest.raises(StatusError) as error:
        apply(None, applied)
    assert (error.value.code, error.value.message) == (code, message)


def client_side(**data: str) -> Object:
    """What ``kubectl apply`` creates."""
    obj = config(**data)
    obj["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(config(**data))}
    return update(None, obj, manager="kubectl-client-side-apply")


def test_kubectl_has_no_conflict_with_what_it_applied_itself() -> None:
    applied = apply(client_side(a="1", b="1"), config(a="2", b="1"), manager="kubectl")
    said = {**config(a="2", b="1")}
    text = json.dumps(dict(sorted(said.items())), separators=(",", ":"))
    assert applied["metadata"]["annotations"] == {LAST_APPLIED: text + "\n"}
    assert managers(applied)["kubectl Apply"] == [".data.a", ".data.b"]


def test_kubectl_has_a_conflict_where_others_changed_that() -> None:
    live = client_side(a="1", b="1")
    changed = {**live, "metadata": dict(live["metadata"]), "data": {"a": "3", "b": "1"}}
    live = update(live, changed, manager="other")
    with pytest.raises(
        StatusError, match=re.escape('1 conflict: conflict with "other" using v1: .data.a')
    ):
        apply(live, config(a="2", b="2"), manager="kubectl")


def test_other_managers_have_conflicts_with_kubectl() -> None:
    with pytest.raises(
        StatusError, match=re.escape('"kubectl-client-side-apply" using v1: .data.a')
    ):
        apply(client_side(a="1"), config(a="2"))


keys = st.sampled_from("abcd")
datas = st.dictionaries(keys, st.sampled_from("12"), max_size=4)
writers = st.sampled_from(["x", "y", "z"])


@given(st.lists(st.tuples(writers, st.booleans(), datas), max_size=6))
def test_any_writes(writes: list[tuple[str, bool, dict[str, str]]]) -> None:
    """Against an oracle that keeps data and owners as plain maps and sets."""
    obj = config()
    data: dict[str, str] = {}
    owners: dict[tuple[str, str], set[str]] = {}
    for writer, applies, said in writes:
        before = dict(data)
        if applies:
            gone = owners.get((writer, "Apply"), set()) - set(said)
            owners[writer, "Apply"] = set(said)
            data |= said
            for key in gone:
                if not any(key in owned for owned in owners.values()):
                    del data[key]
            obj = apply(obj, config(**said), manager=writer, force=True)
        else:
            data = dict(said)
            new = {**config(**said), "metadata": dict(obj["metadata"])}
            obj = update(obj, new, manager=writer)
        mine = (writer, "Apply" if applies else "Update")
        other = {key for key, value in data.items() if before.get(key) != value}
        for who, owned in owners.items():
            if who != mine or not applies:
                owned -= other | (set(before) - set(data))
        if not applies:
            owners.setdefault(mine, set()).update(other)
    assert obj.get("data", {}) == data
    found = {
        (entry["manager"], entry["operation"]): {
            path[1][2:] for path in field_sets.paths_of(entry["fieldsV1"]) if len(path) == 2
        }
        for entry in obj["metadata"].get("managedFields", [])
    }
    assert {who: owned for who, owned in found.items() if owned} == {
        who: owned for who, owned in owners.items() if owned
    }


@given(datas, datas, datas)
def test_applying_twice_is_applying_once(
    live: dict[str, str], mine: dict[str, str], before: dict[str, str]
) -> None:
    obj = apply(update(None, config(**live), manager="first"), config(**before), force=True)
    once = apply(obj, config(**mine), force=True, now=T2)
    assert apply(once, config(**mine), now=T3) == once
