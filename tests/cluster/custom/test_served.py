"""Custom resources over HTTP: from the definition to the end."""

from typing import Any

import pytest

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

SIZED = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 1},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "note": {"type": "string", "nullable": True},
    },
}


async def test_a_kind_is_served_when_its_definition_is_created() -> None:
    server = serving()
    assert (await server.request("GET", widgets()))[0] == 404
    await server.post(DEFINITIONS, definition(shortNames=["wd"]))
    stored = await server.get(f"{DEFINITIONS}/widgets.example.com")
    assert stored["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
    }
    assert stored["status"]["storedVersions"] == ["v1"]
    assert [
        (condition["type"], condition["status"]) for condition in stored["status"]["conditions"]
    ] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
    assert (await server.get(widgets()))["kind"] == "WidgetList"


async def test_objects_are_pruned_and_defaulted() -> None:
    server = await defined(definition("Widget", version(spec=SIZED)))
    spec = {"free": {"a": None, "b": [1]}, "lost": 1, "note": None, "size": None}
    made = await server.post(widgets(), widget(spec=spec))
    assert made["spec"] == {"free": {"a": None, "b": [1]}, "note": None, "size": 1}
    assert made["metadata"]["generation"] == 1


async def test_unknown_fields_are_refused_when_the_client_wants_that() -> None:
    server = await defined(definition("Widget", version(spec=SIZED)))
    body = widget(spec={"lost": 1}, more={})
    code, answer = await server.request("POST", f"{widgets()}?fieldValidation=Strict", body)
    assert code == 400
    assert answer["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: '
        'unknown field "more", unknown field "spec.lost"'
    )


@pytest.mark.parametrize(
    ("media_type", "patch", "code"),
    [
        pytest.param("application/merge-patch+json", {"spec": {"size": 3}}, 200, id="merge"),
        pytest.param(
            "application/json-patch+json",
            [{"op": "replace", "path": "/spec/size", "value": 3}],
            200,
            id="JSON patch",
        ),
        pytest.param(
            "application/strategic-merge-patch+json", {"spec": {"size": 3}}, 415, id="strategic"
        ),
    ],
)
async def test_patches(media_type: str, patch: Any, code: int) -> None:
    server = await defined(definition("Widget", version(spec=SIZED)))
    await server.post(widgets(), widget())
    found, answer = await server.request("PATCH", f"{widgets()}/w", patch, content_type=media_type)
    assert found == code
    if code == 200:
        assert (answer["spec"]["size"], answer["metadata"]["generation"]) == (3, 2)


async def test_the_status_is_a_part_of_its_own() -> None:
    server = await defined(definition("Widget", version(spec=SIZED, subresources={"status": {}})))
    made = await server.post(widgets(), widget(status={"lost": 1}))
    assert "status" not in made
    body = widget(spec={"size": 9}, status={"ready": True})
    body["metadata"] = {**made["metadata"], "labels": {"lost": "yes"}}
    code, answer = await server.request("PUT", f"{widgets()}/w/status", body)
    assert code == 200
    assert answer["status"] == {"ready": True}
    assert answer["spec"] == {"size": 1}
    assert answer["metadata"]["generation"] == 1
    assert "labels" not in answer["metadata"]


async def test_without_the_subresource_the_status_is_like_any_field() -> None:
    server = await defined(definition())
    made = await server.post(widgets(), widget(status={"a": 1}))
    assert made["status"] == {"a": 1}
    assert (await server.request("GET", f"{widgets()}/w/status"))[0] == 404
    code, answer = await server.request("PUT", f"{widgets()}/w", {**made, "status": {"a": 2}})
    assert (code, answer["metadata"]["generation"]) == (200, 2)


async def test_all_versions_show_the_same_objects() -> None:
    old = version(
        "v1beta1",
        spec={"type": "object", "properties": {"size": {"type": "integer"}}},
        storage=False,
    )
    server = await defined(definition("Widget", old, version("v1", spec=SIZED)))
    await server.post(widgets(), widget(spec={"size": 2, "note": "n"}))
    shown = await server.get(f"{widgets(at='v1beta1')}/w")
    assert (shown["apiVersion"], shown["spec"]) == ("example.com/v1beta1", {"size": 2})
    changed = {**shown, "spec": {"size": 3}}
    assert (await server.request("PUT", f"{widgets(at='v1beta1')}/w", changed))[0] == 200
    assert (await server.get(f"{widgets()}/w"))["spec"] == {"size": 3}


async def test_a_default_that_comes_later_is_shown() -> None:
    server = await defined(definition())
    await server.post(widgets(), widget())
    crd = await server.get(f"{DEFINITIONS}/widgets.example.com")
    crd["spec"]["versions"][0] = version(spec=SIZED)
    assert (await server.request("PUT", f"{DEFINITIONS}/widgets.example.com", crd))[0] == 200
    assert (await server.get(f"{widgets()}/w"))["spec"] == {"size": 1}
    assert (await server.get(widgets()))["items"][0]["spec"] == {"size": 1}


async def test_a_version_that_is_not_served_any_more_is_gone() -> None:
    old = version("v1beta1", storage=False)
    server = await defined(definition("Widget", old, version("v1")))
    crd = await server.get(f"{DEFINITIONS}/widgets.example.com")
    crd["spec"]["versions"][0]["served"] = False
    assert (await server.request("PUT", f"{DEFINITIONS}/widgets.example.com", crd))[0] == 200
    assert (await server.request("GET", widgets(at="v1beta1")))[0] == 404
    assert (await server.request("GET", widgets()))[0] == 200


async def test_with_the_definition_its_objects_go() -> None:
    server = await defined(definition())
    await server.post(widgets(), widget())
    assert (await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com"))[0] == 200
    assert (await server.request("GET", f"{DEFINITIONS}/widgets.example.com"))[0] == 404
    assert (await server.request("GET", widgets()))[0] == 404
    await server.post(DEFINITIONS, definition())
    assert (await server.get(widgets()))["items"] == []


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("POST", "widgets", 404, id="create"),
        pytest.param("DELETE", "widgets", 404, id="delete all"),
        pytest.param("GET", "widgets", 200, id="but all are listed"),
    ],
)
async def test_namespaced_kinds_are_written_in_namespaces(
    method: str, path: str, code: int
) -> None:
    server = await defined(definition())
    group = widgets().split("/namespaces/")[0]
    got, answer = await server.request(method, f"{group}/{path}", widget())
    assert got == code
    if code == 404:
        assert answer["message"] == "the server could not find the requested resource"


async def test_a_definition_waits_for_objects_that_are_held() -> None:
    server = await defined(definition())
    body = widget()
    body["metadata"]["finalizers"] = ["example.com/held"]
    await server.post(widgets(), body)
    await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    conditions = await status_of(server)
    assert conditions["Terminating"]["reason"] == "InstanceDeletionInProgress"
    assert (await server.request("POST", widgets(), widget("new")))[0] == 405
    held = await server.get(f"{widgets()}/w")
    assert held["metadata"]["deletionTimestamp"]
    held["metadata"]["finalizers"] = []
    assert (await server.request("PUT", f"{widgets()}/w", held))[0] == 200
    assert (await server.request("GET", f"{DEFINITIONS}/widgets.example.com"))[0] == 404


SCALABLE = version(
    spec={"type": "object", "properties": {"size": {"type": "integer"}}},
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.ready",
            "labelSelectorPath": ".status.selector",
        },
    },
)


async def test_scale_is_where_the_definition_says() -> None:
    server = await defined(definition("Widget", SCALABLE))
    made = await server.post(widgets(), widget(spec={"size": 2}))
    status = {**made, "status": {"ready": 1, "selector": "app=w"}}
    assert (await server.request("PUT", f"{widgets()}/w/status", status))[0] == 200
    scale = await server.get(f"{widgets()}/w/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "app=w"}
    scale["spec"]["replicas"] = 5
    assert (await server.request("PUT", f"{widgets()}/w/scale", scale))[0] == 200
    stored = await server.get(f"{widgets()}/w")
    assert (stored["spec"], stored["metadata"]["generation"]) == ({"size": 5}, 2)


async def test_no_scale_without_replicas() -> None:
    server = await defined(definition("Widget", SCALABLE))
    await server.post(widgets(), widget())
    code, answer = await server.request("GET", f"{widgets()}/w/scale")
    assert code == 500
    assert 'the spec replicas field ".spec.size" does not exist' in answer["message"]


async def test_a_size_below_zero_is_refused() -> None:
    server = await defined(definition("Widget", SCALABLE))
    code, answer = await server.request("POST", widgets(), widget(spec={"size": -1}))
    assert code == 422
    assert "should be a non-negative integer" in answer["message"]


async def test_another_server_on_the_same_store_serves_the_same() -> None:
    first = await defined(definition("Widget", version(spec=SIZED)))
    await first.post(widgets(), widget())
    second = serving(store=first.store)
    assert (await second.get(f"{widgets()}/w"))["spec"] == {"size": 1}
    assert second.store.version == first.store.version


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param(
            {"deprecated": True},
            "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget",
            id="the usual words",
        ),
        pytest.param(
            {"deprecated": True, "deprecationWarning": "v1beta1 ends soon"},
            "v1beta1 ends soon",
            id="words of its own",
        ),
    ],
)
async def test_deprecated_versions_warn(more: dict[str, Any], said: str) -> None:
    old = version("v1beta1", storage=False, **more)
    server = await defined(definition("Widget", old, version()))
    answer = await server.http.get(widgets(at="v1beta1"))
    assert answer.headers["warning"] == f'299 - "{said}"'
    assert "warning" not in (await server.http.get(widgets())).headers


async def test_every_version_has_watches() -> None:
    server = await defined(definition("Widget", version("v1beta1", storage=False), version()))
    events = await server.watch(
        f"{widgets(at='v1beta1')}?watch=1&timeoutSeconds=1",
        lambda: server.post(widgets(), widget()),
        seconds=2,
    )
    assert [event["object"]["apiVersion"] for event in events] == ["example.com/v1beta1"]


async def test_fields_can_be_selected() -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    fields = [{"jsonPath": ".spec.size"}]
    server = await defined(definition("Widget", version(spec=spec, selectableFields=fields)))
    for name, size in (("a", 1), ("b", 2)):
        await server.post(widgets(), widget(name, spec={"size": size}))
    found = await server.get(f"{widgets()}?fieldSelector=spec.size%3D2")
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]
    code, _ = await server.request("GET", f"{widgets()}?fieldSelector=spec.other%3D2")
    assert code == 400


async def test_tables_have_the_columns_of_the_version() -> None:
    columns = [
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="R")].status',
        },
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Since", "type": "date", "jsonPath": ".status.since"},
    ]
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    server = await defined(
        definition("Widget", version(spec=spec, additionalPrinterColumns=columns))
    )
    status = {"conditions": [{"type": "R", "status": "True"}], "since": "2023-11-14T21:13:20Z"}
    await server.post(widgets(), widget(spec={"size": 3}, status=status))
    await server.post(widgets(), widget("x"))
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    _, table = await server.request("GET", widgets(), accept=accept)
    names = [column_definition["name"] for column_definition in table["columnDefinitions"]]
    assert names == ["Name", "Ready", "Size", "Since"]
    assert [row["cells"] for row in table["rows"]] == [
        ["w", "True", 3, "60m"],
        ["x", None, None, None],
    ]


async def test_protobuf_is_not_for_custom_resources() -> None:
    server = await defined(definition())
    wanted = "application/vnd.kubernetes.protobuf"
    assert (await server.http.get(widgets(), headers={"accept": wanted})).status_code == 406
    either = {"accept": f"{wanted},application/json"}
    assert (await server.http.get(widgets(), headers=either)).json()["kind"] == "WidgetList"


@pytest.mark.parametrize(
    ("rules", "unchecked"),
    [
        pytest.param([], False, id="there are none"),
        pytest.param([{"rule": "self != 'x'"}], True, id="rules wait for a valid object"),
    ],
)
async def test_an_invalid_object_and_rules(rules: list[Any], unchecked: bool) -> None:
    name = {
        "type": "string",
        "maxLength": 2,
        **({"x-kubernetes-validations": rules} if rules else {}),
    }
    spec = {"type": "object", "properties": {"name": name}}
    server = await defined(definition("Widget", version(spec=spec)))
    code, answer = await server.request("POST", widgets(), widget(spec={"name": "abc"}))
    assert code == 422
    assert ("some validation rules were not checked" in answer["message"]) is unchecked
