"""The data file: every kind described, lists merged by keys that exist, one number per field."""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import (
    ANYTHING,
    Field,
    ListOf,
    MapOf,
    Scalar,
    Schema,
    Type,
    reachable,
)
from berth.runtime.release import RELEASE, RELEASES

CORE = "io.k8s.api.core.v1."
META = builtin.META


def every_schema(release: str = RELEASE) -> dict[str, Schema]:
    kinds = (
        builtin.schema_of(each.group, each.version, each.kind, release)
        for each in builtin.kinds(release)
    )
    return {found.name: found for kind in kinds if kind is not None for found in reachable(kind)}


def every_field() -> Iterator[tuple[Schema, str, Field]]:
    for release in RELEASES:
        for schema in every_schema(release).values():
            for name, field in schema.fields.items():
                yield schema, name, field


@pytest.mark.parametrize("release", RELEASES)
def test_every_kind_that_a_server_serves_has_its_fields(release: str) -> None:
    for kind in builtin.kinds(release):
        schema = builtin.schema_of(kind.group, kind.version, kind.kind, release)
        assert schema is not None, kind
        assert {"apiVersion", "kind", "metadata"} <= schema.fields.keys()


def test_what_merges_has_its_key() -> None:
    merged = [(s.name, name, field) for s, name, field in every_field() if field.merge_key]
    assert len(merged) > 40
    for owner, name, field in merged:
        assert isinstance(field.type, ListOf), (owner, name)
        item = field.type.item
        assert isinstance(item, Schema), (owner, name)
        assert field.merge_key in item.fields, (owner, name)


def test_lists_of_type_map_have_their_keys() -> None:
    found = [(s.name, name, field) for s, name, field in every_field() if field.list_type == "map"]
    assert len(found) > 40
    for owner, name, field in found:
        assert isinstance(field.type, ListOf), (owner, name)
        assert isinstance(field.type.item, Schema), (owner, name)
        assert field.list_keys, (owner, name)
        assert set(field.list_keys) <= field.type.item.fields.keys(), (owner, name)


def test_fields_have_numbers_of_their_own() -> None:
    for schema in every_schema().values():
        numbers = [
            field.number
            for name, field in schema.fields.items()
            if field.number or name not in ("apiVersion", "kind")
        ]
        assert all(numbers), schema
        assert len(set(numbers)) == len(numbers), schema


@pytest.mark.parametrize(
    ("owner", "field", "want"),
    [
        pytest.param(CORE + "PodSpec", "nodeName", Scalar("string"), id="text"),
        pytest.param(
            CORE + "PodSpec", "containers", ListOf(builtin.schema(CORE + "Container")), id="list"
        ),
        pytest.param(CORE + "PodSpec", "nodeSelector", MapOf(Scalar("string")), id="map"),
        pytest.param(CORE + "NodeStatus", "capacity", MapOf(Scalar("Quantity")), id="quantities"),
        pytest.param(CORE + "NodeSwapStatus", "capacity", Scalar("int64"), id="a plain number"),
        pytest.param(CORE + "ServicePort", "targetPort", Scalar("IntOrString"), id="port or name"),
        pytest.param(CORE + "Secret", "data", MapOf(Scalar("bytes")), id="bytes"),
        pytest.param(META + "ManagedFieldsEntry", "fieldsV1", Scalar("FieldsV1"), id="anything"),
        pytest.param(META + "ObjectMeta", "creationTimestamp", Scalar("Time"), id="time"),
    ],
)
def test_types(owner: str, field: str, want: Type) -> None:
    assert builtin.schema(owner).fields[field].type == want


def test_a_field_has_all_that_is_declared_of_it() -> None:
    owners = builtin.meta("ObjectMeta").fields["ownerReferences"]
    assert owners == Field(
        type=ListOf(builtin.meta("OwnerReference")),
        list_type="map",
        list_keys=("uid",),
        patch_strategy="merge",
        merge_key="uid",
        number=(13,),
    )
    assert builtin.schema(CORE + "ContainerPort").fields["protocol"] == Field(
        type=Scalar("string"),
        default="TCP",
        enum=("SCTP", "TCP", "UDP"),
        by_value=True,
        number=(4,),
        go_type="v1.Protocol",
    )


def test_inline_fields_have_a_path() -> None:
    assert builtin.schema(CORE + "Volume").fields["emptyDir"].number == (2, 2)
    assert builtin.schema(CORE + "Probe").fields["httpGet"].number == (1, 2)


def test_scalars_are_known() -> None:
    from berth.cluster.schemas.protobuf import READERS, WRITERS
    from berth.cluster.schemas.structs import SCALARS

    found = {scalar(field.type) for _, _, field in every_field()} - {None}
    assert found <= SCALARS.keys()
    assert SCALARS.keys() == READERS.keys() == WRITERS.keys()
    assert SCALARS.keys() >= ANYTHING


def scalar(each: Type) -> str | None:
    match each:
        case Scalar(name):
            return name
        case ListOf(inner) | MapOf(inner):
            return scalar(inner)
        case _:
            return None


def test_descriptions_are_of_fields_that_exist() -> None:
    said = builtin.descriptions(CORE + "HostAlias")
    assert said == {
        "hostnames": "Hostnames for the above IP address.",
        "ip": "IP address of the host file entry.",
    }
    fields: dict[str, set[str]] = defaultdict(set)
    for schema, name, _field in every_field():
        fields[schema.name].add(name)
    for type_name, known in fields.items():
        assert builtin.descriptions(type_name).keys() <= known


def test_fields_that_hold_an_object_are_described_too() -> None:
    said = builtin.descriptions(CORE + "Pod")
    assert said["metadata"].startswith("Standard object's metadata.")
    assert said["spec"].startswith("Specification of the desired behavior of the pod.")


def test_every_kind_says_what_it_is() -> None:
    said = "Pod is a collection of containers that can run on a host."
    assert builtin.description(CORE + "Pod").startswith(said)
    for kind in builtin.kinds():
        schema = builtin.schema_of(kind.group, kind.version, kind.kind)
        assert schema is not None
        assert builtin.description(schema.name), kind
    assert builtin.description(CORE + "Teapot") == ""


def test_unknown_names_are_told_apart() -> None:
    assert builtin.schema_of("example.com", "v1", "Teapot") is None
    with pytest.raises(KeyError):
        builtin.schema(CORE + "Teapot")
