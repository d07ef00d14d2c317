"""APIServices of what the server serves itself."""

from tests.cluster.custom.definitions import DEFINITIONS, defined, definition, serving, version

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


async def test_what_the_server_has_from_the_start_is_available() -> None:
    server = serving()
    apps = await server.get(f"{SERVICES}/v1.apps")
    assert apps["spec"] == {
        "group": "apps",
        "version": "v1",
        "groupPriorityMinimum": 17800,
        "versionPriority": 15,
    }
    assert apps["status"]["conditions"][0]["reason"] == "Local"
    core = await server.get(f"{SERVICES}/v1.")
    assert "group" not in core["spec"]
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    _, shown = await server.request("GET", f"{SERVICES}/v1.apps", accept=table)
    assert shown["rows"][0]["cells"][:3] == ["v1.apps", "Local", "True"]


async def test_they_come_and_go_with_custom_resources() -> None:
    server = await defined(definition("Widget", version("v1beta1", storage=False), version()))
    names = {item["metadata"]["name"] for item in (await server.get(SERVICES))["items"]}
    assert {"v1.example.com", "v1beta1.example.com"} <= names
    await server.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    after = {item["metadata"]["name"] for item in (await server.get(SERVICES))["items"]}
    assert names - after == {"v1.example.com", "v1beta1.example.com"}
