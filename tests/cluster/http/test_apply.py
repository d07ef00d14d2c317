"""Server-side apply over HTTP: what may be asked, what is answered, in all places of an object."""

from typing import Any

import pytest

from tests.cluster.access.secured import ALICE, Secured, rule
from tests.cluster.custom.definitions import (
    defined,
    definition,
    serving,
    version,
    widget,
    widgets,
)
from tests.cluster.serving import Serving, unmanaged

APPLY = "application/apply-patch+yaml"
CONFIG_MAP = "/api/v1/namespaces/default/configmaps/c"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"
ME = "fieldManager=me"


def config(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


async def apply(server: Serving, path: str, body: Any, query: str = ME) -> tuple[int, Any]:
    return await server.request("PATCH", f"{path}?{query}", body, content_type=APPLY)


def managers(obj: Any) -> list[tuple[str, str, str]]:
    return [
        (field["manager"], field["operation"], field.get("subresource", ""))
        for field in obj["metadata"].get("managedFields", [])
    ]


async def test_who_applies_creates_and_changes_nothing_the_second_time() -> None:
    server = serving()
    code, created = await apply(server, CONFIG_MAP, config(a="1"))
    assert (code, created["data"], managers(created)) == (201, {"a": "1"}, [("me", "Apply", "")])
    server.clock.advance(10)
    assert await apply(server, CONFIG_MAP, config(a="1")) == (200, created)
    assert await server.get(CONFIG_MAP) == created


async def test_yaml_is_applied_too() -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: '1' # one\n"
    code, created = await apply(serving(), CONFIG_MAP, body)
    assert (code, created["data"]) == (201, {"a": "1"})


async def test_a_dry_run_keeps_nothing_and_has_the_version_of_what_is_there() -> None:
    server = serving()
    code, created = await apply(server, CONFIG_MAP, config(a="1"), f"{ME}&dryRun=All")
    assert (code, "resourceVersion" in created["metadata"]) == (201, False)
    assert (await server.request("GET", CONFIG_MAP))[0] == 404

    _, before = await apply(server, CONFIG_MAP, config(a="1"))
    code, changed = await apply(server, CONFIG_MAP, config(a="2"), f"{ME}&dryRun=All")
    assert (code, changed["data"]) == (200, {"a": "2"})
    assert changed["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert await server.get(CONFIG_MAP) == before


@pytest.mark.parametrize(
    ("query", "body", "code", "message"),
    [
        pytest.param(
            "",
            config(),
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: '
            "is required for apply patch",
            id="nobody",
        ),
        pytest.param(ME, [], 400, "error decoding YAML: the body must be an object", id="a list"),
        pytest.param(
            ME,
            {**config(), "metadata": {"name": "d"}},
            400,
            "the name of the object (d) does not match the name on the URL (c)",
            id="another name",
        ),
        pytest.param(
            ME,
            {**config(), "metadata": {}},
            400,
            "the name of the object (c based on URL) was undeterminable: name must be provided",
            id="no name",
        ),
        pytest.param(
            ME,
            {**config(), "metadata": {"name": "c", "namespace": "other"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(
            f"{ME}&fieldValidation=Strict",
            b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"","a":""}}',
            400,
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
            '  line 1: key "a" already set in map',
            id="a key twice",
        ),
        pytest.param(
            f"{ME}&fieldValidation=Strict",
            b"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: c\n"
            b"data:\n  a: b\n  a: >\n    c\n  d:\n    e\ndata: {}\n",
            400,
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
            '  line 7: key "a" already set in map\n'
            '  line 11: key "data" already set in map',
            id="keys twice, in YAML",
        ),
        pytest.param(
            ME,
            {**config(), "metadata": {"name": "c", "labels": {"a b": "c"}}},
            422,
            'ConfigMap "c" is invalid: metadata.labels: Invalid value: "a b": name part must '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
            "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            id="an invalid object",
        ),
    ],
)
async def test_what_cannot_be_applied(query: str, body: Any, code: int, message: str) -> None:
    server = serving()
    got, answer = await apply(server, CONFIG_MAP, body, query)
    assert (got, answer["message"]) == (code, message)
    assert (await server.request("GET", CONFIG_MAP))[0] == 404


async def test_only_who_applies_may_force() -> None:
    server = serving()
    await server.post("/api/v1/namespaces/default/configmaps", config(a="1"))
    kind = {"content_type": "application/merge-patch+json"}
    code, answer = await server.request("PATCH", f"{CONFIG_MAP}?force=true", {}, **kind)
    assert (code, answer["message"]) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: '
        "may not be specified for non-apply patch",
    )


async def test_conflicts_and_force() -> None:
    server = serving()
    await server.post("/api/v1/namespaces/default/configmaps?fieldManager=first", config(a="1"))
    code, answer = await apply(server, CONFIG_MAP, config(a="2"))
    assert (code, answer["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "first" using v1: .data.a',
    )
    code, forced = await apply(server, CONFIG_MAP, config(a="2"), f"{ME}&force=true")
    assert (code, forced["data"]) == (200, {"a": "2"})


@pytest.mark.parametrize(
    ("user_agent", "want"),
    [
        pytest.param("kubectl/v1.36 (linux)", "kubectl", id="up to the slash"),
        pytest.param("", "unknown", id="nothing said"),
    ],
)
async def test_the_manager_of_other_writes_is_the_user_agent(user_agent: str, want: str) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    _, created = await serving().request("POST", path, config(a="1"), user_agent=user_agent)
    assert managers(created) == [(want, "Update", "")]


def web(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }


async def test_the_size_is_applied_to_the_scale() -> None:
    server = serving()
    await apply(server, DEPLOYMENT, web(2))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}}
    scale["spec"] = {"replicas": 5}
    code, answer = await apply(server, f"{DEPLOYMENT}/scale", scale, "fieldManager=hpa")
    assert (code, answer["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "me": .spec.replicas',
    )
    query = "fieldManager=hpa&force=true"
    code, scaled = await apply(server, f"{DEPLOYMENT}/scale", scale, query)
    assert (code, scaled["kind"], scaled["spec"]) == (200, "Scale", {"replicas": 5})
    stored = await server.get(DEPLOYMENT)
    assert stored["spec"]["replicas"] == 5
    assert managers(stored) == [("hpa", "Apply", "scale"), ("me", "Apply", "")]
    code, answer = await apply(server, DEPLOYMENT, web(2))
    assert (code, answer["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale": '
        ".spec.replicas",
    )


async def test_the_status_is_applied_for_itself() -> None:
    server = serving()
    _, before = await apply(server, DEPLOYMENT, web(2))
    body = {**web(7), "status": {"conditions": [{"type": "Mine", "status": "True"}]}}
    code, after = await apply(server, f"{DEPLOYMENT}/status", body, "fieldManager=other")
    assert (code, after["spec"]) == (200, before["spec"])
    assert [condition["type"] for condition in after["status"]["conditions"]] == ["Mine"]
    assert managers(after) == [("me", "Apply", ""), ("other", "Apply", "status")]
    own = after["metadata"]["managedFields"][1]["fieldsV1"]
    assert list(own) == ["f:status"]


async def test_the_status_of_nothing_cannot_be_applied() -> None:
    code, answer = await apply(serving(), f"{DEPLOYMENT}/status", web(1))
    assert (code, answer["reason"]) == (404, "NotFound")


async def test_custom_resources_of_two_versions() -> None:
    parts = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
        },
    }
    spec = {"type": "object", "properties": {"parts": parts}}
    v1, v2 = version("v1", spec=spec), version("v2", spec=spec, storage=False)
    server = await defined(definition("Widget", v1, v2))

    def with_parts(at: str, **values: str) -> dict[str, Any]:
        said = [{"name": name, "value": value} for name, value in values.items()]
        return widget(api_version=f"example.com/{at}", spec={"parts": said})

    await apply(server, f"{widgets()}/w", with_parts("v1", a="1"))
    code, both = await apply(
        server, f"{widgets(at='v2')}/w", with_parts("v2", b="2"), "fieldManager=two"
    )
    assert (code, [part["name"] for part in both["spec"]["parts"]]) == (200, ["a", "b"])
    code, answer = await apply(
        server, f"{widgets(at='v2')}/w", with_parts("v2", a="3"), "fieldManager=two"
    )
    assert (code, answer["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "me": .spec.parts[name="a"].value',
    )
    code, left = await apply(server, f"{widgets(at='v2')}/w", with_parts("v2"))
    assert (code, [part["name"] for part in left["spec"]["parts"]]) == (200, ["b"])
    code, answer = await apply(server, f"{widgets()}/w", with_parts("v1") | {"more": 1})
    assert (code, answer["message"]) == (
        500,
        "failed to create typed patch object (/w; example.com/v1, Kind=Widget): "
        ".more: field not declared in schema",
    )


async def test_a_manager_of_a_version_that_needs_a_webhook_stops_no_update() -> None:
    both = (version("v1"), version("v2", storage=False))
    server = await defined(definition("Widget", *both))
    body = widget(api_version="example.com/v2", metadata={"name": "w", "labels": {"a": "b"}})
    await apply(server, f"{widgets(at='v2')}/w", body)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    client = {"url": "https://127.0.0.1:1"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    conversion = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
    kind = {"content_type": "application/merge-patch+json"}
    assert (await server.request("PATCH", path, conversion, **kind))[0] == 200

    labels = {"metadata": {"labels": {"c": "d"}}}
    code, patched = await server.request("PATCH", f"{widgets()}/w", labels, **kind)
    assert (code, patched["metadata"]["labels"]) == (200, {"a": "b", "c": "d"})
    assert managers(patched) == [("me", "Apply", "")]


async def test_who_may_only_patch_does_not_create() -> None:
    server = Secured()
    await server.grant("alice", rule("configmaps", "patch"), namespace="default")
    headers = [("content-type", APPLY)]
    ask = (f"{CONFIG_MAP}?{ME}", config(a="1"))
    code, answer = await server.ask("PATCH", *ask, user=ALICE, headers=headers)
    assert (code, answer["message"]) == (
        403,
        'configmaps "c" is forbidden: User "alice" cannot create resource "configmaps" '
        'in API group "" in the namespace "default"',
    )
    await server.create("/api/v1/namespaces/default/configmaps", config(a="1"))
    code, answer = await server.ask("PATCH", *ask, user=ALICE, headers=headers)
    assert (code, unmanaged(answer)["data"]) == (200, {"a": "1"})
