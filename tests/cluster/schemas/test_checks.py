"""Bodies against the fields of their kind: wrong types, unknown fields, null elements."""

import pytest

from berth.cluster.kinds.builtin import STORED, find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import checks
from berth.cluster.schemas.types import Schema


def pods() -> Schema:
    found = find("", "v1", "pods")
    assert found is not None
    return found.schema


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
    assert checks.prune(pods(), pod) == want


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
            "PodSpec.spec.priority of type int32",
            id="a fraction for a whole number",
        ),
        pytest.param(
            {"priority": 2**31},
            "json: cannot unmarshal number 2147483648 into Go struct field "
            "PodSpec.spec.priority of type int32",
            id="a number of more than 32 bits",
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
        pytest.param(
            {"preemptionPolicy": True},
            "json: cannot unmarshal bool into Go struct field "
            "PodSpec.spec.preemptionPolicy of type v1.PreemptionPolicy",
            id="a text whose type has a name",
        ),
        pytest.param(
            {"hostname": 1.5},
            "json: cannot unmarshal number into Go struct field "
            "PodSpec.spec.hostname of type string",
            id="which number it is matters to numbers only",
        ),
        pytest.param(
            {"volumes": [{"configMap": {"name": 1}}]},
            "json: cannot unmarshal number into Go struct field ConfigMapVolumeSource.spec.volumes."
            "VolumeSource.configMap.LocalObjectReference.name of type string",
            id="structs that are embedded",
        ),
        pytest.param(
            {"containers": [{"livenessProbe": {"httpGet": {"port": True}}}]},
            "json: cannot unmarshal bool into Go struct field HTTPGetAction.spec.containers."
            "livenessProbe.ProbeHandler.httpGet.port of type int32",
            id="a number or a text reads itself",
        ),
        pytest.param(
            {"hostname": 1, "overhead": {"cpu": "x"}, "subdomain": 2},
            checks.MALFORMED,
            id="a quantity that cannot be read is the last that is read",
        ),
    ],
)
def test_misfit(spec: Object, want: str | None) -> None:
    assert checks.misfit(pods(), {"kind": "Pod", "spec": spec}) == want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(FULL_SPEC, None, id="everything fits"),
        pytest.param({"hostname": 1}, "cannot convert int64 to string", id="a number for a text"),
        pytest.param({"hostname": 1.5}, "unrecognized type: string", id="a fraction for a text"),
        pytest.param(
            {"dnsPolicy": 1}, "cannot convert int64 to v1.DNSPolicy", id="a text with a type's name"
        ),
        pytest.param({"dnsPolicy": True}, "unrecognized type: string", id="a truth for a text"),
        pytest.param({"priority": "x"}, "unrecognized type: int32", id="a text for a number"),
        pytest.param(
            {"subdomain": True, "hostname": []},
            "unrecognized type: string",
            id="fields are taken in the order of their declaration",
        ),
        pytest.param({"volumes": {}}, "cannot restore slice from map", id="a map for a list"),
        pytest.param(
            {"containers": [{"livenessProbe": {"httpGet": {"port": True}}}]},
            "json: cannot unmarshal bool into Go value of type int32",
            id="a number or a text reads itself",
        ),
    ],
)
def test_unconverted(spec: Object, want: str | None) -> None:
    assert checks.unconverted(pods(), {"kind": "Pod", "spec": spec}) == want


def test_event_apis_have_their_own_fields() -> None:
    core, new = find("", "v1", "events"), find("events.k8s.io", "v1", "events")
    assert core is not None
    assert new is not None
    assert checks.prune(core.schema, {"note": "x"}) == ["note"]
    assert checks.prune(new.schema, {"note": "x"}) == []


@pytest.mark.parametrize("resource", STORED, ids=lambda each: each.group_version + each.kind)
def test_every_kind_has_a_schema(resource: ResourceType) -> None:
    fields = resource.schema.fields
    assert {"apiVersion", "kind", "metadata"} <= fields.keys()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("2026-11-20T13:06:10Z", ""),
        ("2026-11-20T13:06:10.123456+01:00", ""),
        ("2026-11-20T13:06:10", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2026-13-20T13:06:10Z", ": month out of range"),
        ("2026-02-30T13:06:10Z", ": day out of range"),
        ("1e400", ' as "2006-01-02T15:04:05Z07:00": cannot parse "1e400" as "2006"'),
        ("", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
    ],
)
def test_times(text: str, wrong: str) -> None:
    obj = {"status": {"startTime": text}}
    found = checks.misfit(pods(), obj)
    assert found == (f'parsing time "{text}"{wrong}' if wrong else None)
    assert checks.fits(pods(), obj) is not bool(wrong)
