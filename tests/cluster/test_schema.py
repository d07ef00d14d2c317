"""Which fields there are: complete, merged by keys that exist, and strict about others."""

from typing import Any

import pytest

from berth.cluster import schema, struct_types
from berth.cluster.descriptions import DESCRIPTIONS
from berth.cluster.registry import RESOURCES, find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schema import Field, ListOf, MapOf, Merge, Ref, Scalar


def pods() -> ResourceType:
    found = find("", "v1", "pods")
    assert found is not None
    return found


FULL_SPEC: Object = {
    "containers": [
        {
            "name": "c",
            "image": "nginx",
            "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "resources": {
                "requests": {"cpu": "1", "example.com/gpu": 1},
                "claims": [{"name": "g"}],
            },
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In"}}],
        }
    ],
    "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    "nodeSelector": {"anything": "goes"},
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "matchLabelKeys": ["a"], "namespaceSelector": {}}
            ]
        }
    },
    "topologySpreadConstraints": [{"maxSkew": 1, "minDomains": 2, "nodeTaintsPolicy": "Honor"}],
    "tolerations": [{"key": "k", "operator": "Gt", "value": "1"}],
    "schedulingGates": [{"name": "g"}],
    "schedulingGroup": {"podGroupName": "g"},
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
    "volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"any": "thing"}}}],
    "hostnameOverride": "h",
    "overhead": {"cpu": "1"},
    "resources": {"limits": {"cpu": "1"}},
}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param({"kind": "Pod", "spec": FULL_SPEC}, [], id="every field is known"),
        pytest.param(
            {"metadata": {"labels": {"a": "b"}, "annotations": {"c/d": "e"}}},
            [],
            id="maps have any key",
        ),
        pytest.param({"foo": 1}, ["foo"], id="at the top"),
        pytest.param({"metadata": {"foo": None}}, ["metadata.foo"], id="null is a value"),
        pytest.param(
            {"spec": {"containers": [{"name": "c"}, {"imagee": "x"}]}},
            ["spec.containers[1].imagee"],
            id="in a list",
        ),
        pytest.param(
            {"spec": {"Containers": [], "nodename": "n"}},
            ["spec.Containers", "spec.nodename"],
            id="case matters",
        ),
        pytest.param(
            {"spec": {"containers": {"name": "c"}, "affinity": ["x"], "volumes": [None, 3]}},
            [],
            id="values of the wrong type are for others to refuse",
        ),
    ],
)
def test_unknown_fields(pod: Object, want: list[str]) -> None:
    assert schema.prune(pods(), pod) == want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(FULL_SPEC, None, id="everything fits"),
        pytest.param({"containers": None, "priority": None}, None, id="null is always fine"),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": 0.5, "memory": 1}}}]},
            None,
            id="quantities may be numbers",
        ),
        pytest.param(
            {"priority": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field "
            "PodSpec.spec.priority of type int64",
            id="a fraction for a whole number",
        ),
        pytest.param(
            {"containers": [{"env": [{"name": "A", "value": 1}]}]},
            "json: cannot unmarshal number into Go struct field "
            "EnvVar.spec.containers.env.value of type string",
            id="the variable without quotes",
        ),
        pytest.param(
            {"containers": {"name": "c"}},
            "json: cannot unmarshal object into Go struct field "
            "PodSpec.spec.containers of type []v1.Container",
            id="an object for a list",
        ),
        pytest.param(
            {"nodeSelector": {"a": True}},
            "json: cannot unmarshal bool into Go struct field "
            "PodSpec.spec.nodeSelector of type string",
            id="a label that YAML takes for a truth",
        ),
        pytest.param(
            {"affinity": []},
            "json: cannot unmarshal array into Go struct field "
            "PodSpec.spec.affinity of type v1.Affinity",
            id="a list for an object",
        ),
        pytest.param(
            {"hostNetwork": "true"},
            "json: cannot unmarshal string into Go struct field "
            "PodSpec.spec.hostNetwork of type bool",
            id="a truth in quotes",
        ),
    ],
)
def test_misfit(spec: Object, want: str | None) -> None:
    assert schema.misfit(pods(), {"kind": "Pod", "spec": spec}) == want


def test_event_apis_have_their_own_fields() -> None:
    core, new = find("", "v1", "events"), find("events.k8s.io", "v1", "events")
    assert core is not None
    assert new is not None
    assert schema.prune(core, {"note": "x"}) == ["note"]
    assert schema.prune(new, {"note": "x"}) == []


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.group_version + each.kind)
def test_every_kind_has_a_schema(resource: ResourceType) -> None:
    fields = schema.schema(schema.model_of(resource)).fields
    assert {"apiVersion", "kind", "metadata"} <= fields.keys()


def described() -> list[Any]:
    return [
        pytest.param(model, field, merge, id=f"{model}.{field}")
        for model, merges in schema.MERGES.items()
        for field, merge in merges.items()
    ]


@pytest.mark.parametrize(("model", "field", "merge"), described())
def test_what_merges_exists_and_has_its_key(model: str, field: str, merge: Merge) -> None:
    found = schema.schema(model).fields[field]
    assert found.merge == merge
    if merge.key:
        assert isinstance(found.type, ListOf)
        assert isinstance(found.type.item, Ref)
        assert merge.key in schema.schema(found.type.item.model).fields


def test_descriptions_are_of_types_that_are_served() -> None:
    served = {model for each in RESOURCES for model in schema.reachable(schema.model_of(each))}
    assert not DESCRIPTIONS.keys() - served


@pytest.mark.parametrize(
    ("model", "field", "want"),
    [
        pytest.param("V1PodSpec", "nodeName", Scalar("string"), id="text"),
        pytest.param("V1PodSpec", "containers", ListOf(Ref("V1Container")), id="list"),
        pytest.param("V1PodSpec", "nodeSelector", MapOf(Scalar("string")), id="map"),
        pytest.param("V1NodeStatus", "capacity", MapOf(Scalar("Quantity")), id="quantities"),
        pytest.param("V1NodeSwapStatus", "capacity", Scalar("integer"), id="a plain number"),
        pytest.param("V1ServicePort", "targetPort", Scalar("IntOrString"), id="number or name"),
        pytest.param("V1ManagedFieldsEntry", "fieldsV1", Scalar("any"), id="anything"),
        pytest.param("V1ObjectMeta", "creationTimestamp", Scalar("Time"), id="time"),
    ],
)
def test_types(model: str, field: str, want: schema.Type) -> None:
    assert schema.schema(model).fields[field].type == want


def test_a_field_tells_what_it_is_for() -> None:
    assert schema.schema("V1HostAlias").fields == {
        "hostnames": Field(
            ListOf(Scalar("string")), "Hostnames for the above IP address.", required=False
        ),
        "ip": Field(Scalar("string"), "IP address of the host file entry.", required=True),
    }


@pytest.mark.parametrize(
    ("model", "want"),
    [
        pytest.param("V1PodSpec", "v1.PodSpec", id="plain"),
        pytest.param("CoreV1Event", "core.v1.Event", id="with its group"),
        pytest.param("V1HTTPGetAction", "v1.HTTPGetAction", id="an acronym"),
    ],
)
def test_schema_names(model: str, want: str) -> None:
    assert schema.schema_name(model) == want


def test_what_is_no_model_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="'Configuration' is not the name of a model"):
        schema.schema_name("Configuration")


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        ("2026-11-20T13:06:10Z", True),
        ("2026-11-20T13:06:10.123456+01:00", True),
        ("2026-11-20T13:06:10", False),
        ("2026-13-20T13:06:10Z", False),
        ("1e400", False),
        ("", False),
    ],
)
def test_times(text: str, is_time: bool) -> None:
    obj = {"status": {"startTime": text}}
    why = f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00"'
    assert schema.misfit(pods(), obj) == (None if is_time else why)
    assert struct_types.fits(pods(), obj) is is_time


def test_null_elements_are_empty() -> None:
    obj: Object = {"spec": {"containers": [None, {"args": ["a", None], "ports": None}]}}
    schema.fill_nulls(pods(), obj)
    assert obj == {"spec": {"containers": [{}, {"args": ["a", ""], "ports": None}]}}
