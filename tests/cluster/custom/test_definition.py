"""CustomResourceDefinitions: what is refused, and what is made of their names."""

from collections.abc import Callable
from typing import Any

import pytest

from berth.cluster.resources import Object
from tests.cluster.custom.definitions import (
    DEFINITIONS,
    defined,
    definition,
    serving,
    status_of,
    version,
    widget,
    widgets,
)


def with_spec(**schema: Any) -> Object:
    return definition("Widget", version(spec={"type": "object", **schema}))


def with_field(**schema: Any) -> Object:
    return with_spec(properties={"x": schema})


def changed(change: Callable[[Object], Any]) -> Object:
    made = definition()
    change(made)
    return made


SCHEMA = "spec.versions[0].schema.openAPIV3Schema"
FIELD = f"{SCHEMA}.properties[spec].properties[x]"
STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            changed(lambda each: each["metadata"].update(name="gadgets.example.com")),
            'metadata.name: Invalid value: "gadgets.example.com": '
            'must be spec.names.plural+"."+spec.group',
            id="another name",
        ),
        pytest.param(
            definition(group="example"),
            'spec.group: Invalid value: "example": should be a domain with at least one dot',
            id="a group without a dot",
        ),
        pytest.param(
            definition(group="widgets.k8s.io"),
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups "
            'must have approval annotation "api-approved.kubernetes.io", see '
            "https://github.com/kubernetes/enhancements/pull/1111",
            id="a protected group",
        ),
        pytest.param(
            definition(scope="Galaxy"),
            'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
            id="a scope that there is not",
        ),
        pytest.param(
            definition("Widget", version("v1"), version("v2")),
            'spec.versions: Invalid value: ["v1","v2"]: '
            "must have exactly one version marked as storage version",
            id="two storage versions",
        ),
        pytest.param(
            definition("Widget", version("v1"), version("v1", storage=False)),
            'spec.versions: Invalid value: ["v1","v1"]: must contain unique version names',
            id="a version twice",
        ),
        pytest.param(
            definition(listKind="Widget"),
            'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
            id="a list that is called like its items",
        ),
        pytest.param(
            changed(lambda each: each["spec"].update(preserveUnknownFields=True)),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
            id="unknown fields kept everywhere",
        ),
        pytest.param(
            changed(lambda each: each["spec"]["versions"][0].pop("schema")),
            f"{SCHEMA}: Required value: schemas are required",
            id="no schema",
        ),
        pytest.param(
            with_field(description="what?"),
            f"{FIELD}.type: Required value: must not be empty for specified object fields",
            id="no type",
        ),
        pytest.param(
            with_field(type="array"),
            f"{FIELD}.items: Required value: must be specified",
            id="a list of nothing",
        ),
        pytest.param(
            with_field(type="text"),
            f'{FIELD}.type: Unsupported value: "text": supported values: "array", "boolean", '
            '"integer", "number", "object", "string"',
            id="a type that there is not",
        ),
        pytest.param(
            with_field(type="object", properties={"a": STRING}, additionalProperties=STRING),
            f"{FIELD}.additionalProperties: Forbidden: additionalProperties and properties are "
            "mutual exclusive",
            id="an object and a map",
        ),
        pytest.param(
            with_field(type="array", items=STRING, uniqueItems=True),
            f"{FIELD}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
            "complexity becomes quadratic",
            id="unique items",
        ),
        pytest.param(
            with_field(type="string", anyOf=[{"type": "string"}]),
            f"{FIELD}.anyOf[0].type: Forbidden: must be empty to be structural",
            id="a type in a composition",
        ),
        pytest.param(
            with_field(type="object", oneOf=[{"properties": {"a": {"minLength": 1}}}]),
            f"{FIELD}.properties[a]: Required value: because it is defined in "
            f"{FIELD}.oneOf[0].properties[a]",
            id="a field in a composition only",
        ),
        pytest.param(
            with_field(type="integer", default="one"),
            f'{FIELD}.default: Invalid value: "string": {FIELD}.default in body must be of type '
            'integer: "string"',
            id="a default of another type",
        ),
        pytest.param(
            with_field(**{"type": "string", "x-kubernetes-int-or-string": True}),
            f'{FIELD}.type: Invalid value: "string": must be empty if x-kubernetes-int-or-string '
            "is true",
            id="int-or-string with a type",
        ),
        pytest.param(
            with_field(
                **{
                    "type": "array",
                    "items": {"type": "object", "properties": {"k": STRING}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                }
            ),
            f"{FIELD}.items.properties[k].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it must have a default or be a required property",
            id="a key that may be missing",
        ),
        pytest.param(
            with_field(type="string", pattern="("),
            f'{FIELD}.pattern: Invalid value: "(": must be a valid regular expression, but '
            "isn't: missing ): (",
            id="a pattern that is none",
        ),
        pytest.param(
            definition(
                "Widget",
                version(
                    additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".spec"}]
                ),
            ),
            'spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "text": must be one '
            "of boolean,date,integer,number,string",
            id="a column of another type",
        ),
        pytest.param(
            definition(
                "Widget",
                version(
                    subresources={
                        "scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".status.n"}
                    }
                ),
            ),
            'spec.versions[0].subresources.scale.specReplicasPath: Invalid value: "spec.n": must '
            "be a simple json path starting with .",
            id="a path without a dot",
        ),
        pytest.param(
            definition("Widget", version(selectableFields=[{"jsonPath": ".spec.gone"}])),
            'spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".spec.gone": is an '
            "invalid path: does not refer to a valid field",
            id="a field that cannot be selected",
        ),
    ],
)
async def test_what_is_refused(body: Object, message: str) -> None:
    code, answer = await serving().request("POST", DEFINITIONS, body)
    assert code == 422, answer
    assert message in answer["message"]


async def test_either_of_two_types_in_the_usual_way() -> None:
    either = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
    }
    server = await defined(with_field(**either))
    made = await server.post(widgets(), widget(spec={"x": "50%"}))
    assert made["spec"] == {"x": "50%"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param(lambda spec: spec.update(scope="Cluster"), "spec.scope", id="scope"),
        pytest.param(
            lambda spec: spec["names"].update(kind="Gadget"), "spec.names.kind", id="kind"
        ),
    ],
)
async def test_what_an_established_definition_keeps(
    change: Callable[[Object], Any], field: str
) -> None:
    server = await defined(definition())
    crd = await server.get(f"{DEFINITIONS}/widgets.example.com")
    change(crd["spec"])
    code, answer = await server.request("PUT", f"{DEFINITIONS}/widgets.example.com", crd)
    assert code == 422
    assert f"{field}: Invalid value: " in answer["message"]
    assert "field is immutable" in answer["message"]


async def test_a_version_that_is_stored_stays_in_the_list() -> None:
    server = await defined(definition())
    crd = await server.get(f"{DEFINITIONS}/widgets.example.com")
    crd["spec"]["versions"] = [version("v2")]
    code, answer = await server.request("PUT", f"{DEFINITIONS}/widgets.example.com", crd)
    assert code == 422
    assert "status.storedVersions[0]: Invalid value: " in answer["message"]
    assert "v1 was previously a storage version" in answer["message"]


async def test_names_that_others_have_are_not_accepted() -> None:
    server = await defined(definition(shortNames=["wd"]), definition("Gadget", shortNames=["wd"]))
    gadgets = "gadgets.example.com"
    conditions = await status_of(server, gadgets)
    assert conditions["NamesAccepted"]["reason"] == "ShortNamesConflict"
    assert conditions["NamesAccepted"]["message"] == '"wd" is already in use'
    assert conditions["Established"]["status"] == "False"
    path = "/apis/example.com/v1/namespaces/default/gadgets"
    assert (await server.request("GET", path))[0] == 404
    await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert (await status_of(server, gadgets))["Established"]["status"] == "True"
    assert (await server.request("GET", path))[0] == 200


async def test_what_comes_with_the_server_cannot_be_replaced() -> None:
    group = "events.k8s.io"
    body = definition("Event", group=group)
    body["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/1"}
    server = await defined(body)
    assert (await server.get(f"/apis/{group}/v1"))["resources"][0]["shortNames"] == ["ev"]


async def test_discovery_and_openapi_follow() -> None:
    server = serving()
    index = await server.get("/openapi/v3")
    assert "apis/example.com/v1" not in index["paths"]
    plain = index["paths"]["apis/apps/v1"]
    await server.post(
        DEFINITIONS, definition("Widget", version("v1beta1", storage=False), version())
    )
    group = await server.get("/apis/example.com")
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"
    index = await server.get("/openapi/v3")
    assert index["paths"]["apis/apps/v1"] == plain
    document = await server.get("/openapi/v3/apis/example.com/v1")
    published = document["components"]["schemas"]["com.example.v1.Widget"]
    assert published["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "kind": "Widget", "version": "v1"}
    ]
    assert {"apiVersion", "kind", "metadata", "spec", "status"} == {*published["properties"]}
    await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert (await server.request("GET", "/apis/example.com"))[0] == 404


async def test_swagger_says_no_more_than_it_can() -> None:
    maybe = {"type": "string", "nullable": True, "oneOf": [{"minLength": 1}]}
    server = await defined(with_field(**maybe))
    document = await server.get("/openapi/v2")
    spec = document["definitions"]["com.example.v1.Widget"]["properties"]["spec"]
    assert spec["properties"]["x"] == {}


async def test_conversion_by_webhook_is_said_not_to_be_served() -> None:
    old = version("v1beta1", storage=False)
    body = definition("Widget", old, version())
    body["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"url": "https://example.com/convert"},
            "conversionReviewVersions": ["v1"],
        },
    }
    server = await defined(body)
    await server.post(widgets(), widget())
    code, answer = await server.request("GET", f"{widgets(at='v1beta1')}/w")
    assert code == 500
    assert "conversion webhook for example.com/v1, Kind=Widget failed" in answer["message"]
    assert "use example.com/v1" in answer["message"]


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("1" + " + 1" * 5000 + " > 0", id="a long chain"),
        pytest.param("(" * 3000 + "true" + ")" * 3000, id="many brackets"),
        pytest.param("true" + " && true" * 20000, id="more than anybody reads"),
        pytest.param("self.\0", id="a character of no meaning"),
    ],
)
async def test_hostile_rules_are_refused(rule: str) -> None:
    body = with_spec(**{"x-kubernetes-validations": [{"rule": rule}]})
    code, answer = await serving().request("POST", DEFINITIONS, body)
    assert 400 <= code < 500, answer


async def test_a_rule_may_name_many_fields() -> None:
    fields = {f"f{index}": {"type": "string"} for index in range(200)}
    rule = " || ".join(f"self.{name} == 'x'" for name in fields)
    body = with_spec(properties=fields, **{"x-kubernetes-validations": [{"rule": rule}]})
    server = await defined(body)
    await server.post(widgets(), widget(spec=dict.fromkeys(fields, "x")))


@pytest.mark.parametrize("number", [b"1e300", b"9" * 400])
async def test_numbers_beyond_measure_are_no_multiples(number: bytes) -> None:
    server = await defined(with_field(type="number", multipleOf=1e-300))
    body = b'{"metadata":{"name":"w"},"spec":{"x":%b}}' % number
    code, answer = await server.request("POST", widgets(), body)
    assert code in (400, 422), answer


async def test_conditions_of_others_stay_beside_those_of_the_server() -> None:
    server = await defined(definition())
    path = f"{DEFINITIONS}/widgets.example.com/status"
    crd = await server.get(path)
    crd["status"]["conditions"] = [{"type": "Mine", "status": "True", "message": "updated"}]
    code, answer = await server.request("PUT", path, crd)
    assert (code, [condition["type"] for condition in answer["status"]["conditions"]]) == (
        200,
        ["Mine"],
    )
    conditions = await status_of(server)
    assert [*conditions] == ["Mine", "NamesAccepted", "Established"]
    assert (await server.request("GET", widgets()))[0] == 200
