"""The API of each release over HTTP: its version, kinds, fields, columns and field selectors."""

import random
from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest

from berth.cluster.bootstrap import bootstrap
from berth.cluster.features import default_features
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.gated import served
from berth.cluster.kinds.registry import Registry
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.cluster.storage.store import Store
from berth.runtime.clock import FakeClock
from berth.runtime.release import PATCHES, RELEASES
from tests.cluster.at_once import at_once
from tests.cluster.serving import NOW

IN_1_37: Final = {
    "certificates.k8s.io/v1/clustertrustbundles",
    "certificates.k8s.io/v1/podcertificaterequests",
    "resource.k8s.io/v1/devicetaintrules",
    "storagemigration.k8s.io/v1/storageversionmigrations",
}
"""What is new by default."""


class Server:
    """A server of a release, which anybody may ask."""

    def __init__(self, release: str, *gates: str) -> None:
        features = gates or default_features(release)
        server = ApiServer(
            Registry(served(features, release), release=release),
            Store(),
            clock=FakeClock(NOW),
            rng=random.Random(1),
            features=features,
        )
        at_once(bootstrap(server.writes))
        transport = httpx.ASGITransport(app=server.app)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://cluster")

    async def get(self, path: str, **headers: str) -> Any:
        return (await self._http.get(path, headers=headers)).json()

    async def post(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        return await self._http.post(path, json=body)

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = await self._http.put(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def kinds(self) -> set[str]:
        """Return ``group/version/plural`` of what discovery has of named groups."""
        groups = (await self.get("/apis"))["groups"]
        found = set()
        for version in (v["groupVersion"] for group in groups for v in group["versions"]):
            for resource in (await self.get(f"/apis/{version}"))["resources"]:
                found.add(f"{version}/{resource['name']}")
        return {each for each in found if each.count("/") == 2}


@pytest.mark.parametrize("release", RELEASES)
async def test_the_version(release: str) -> None:
    said = await Server(release).get("/version")
    assert f"{said['major']}.{said['minor']}" == release
    assert said["gitVersion"] == f"v{PATCHES[release]}+berth"


async def test_what_discovery_has_more_in_1_37() -> None:
    before, after = [await Server(release).kinds() for release in RELEASES]
    assert after - before == IN_1_37
    assert before <= after


@pytest.mark.parametrize(
    ("release", "gates", "want"),
    [
        ("1.36", (), set()),
        ("1.36", ("DRADeviceTaintRules",), {"resource.k8s.io/v1beta2/devicetaintrules"}),
        ("1.37", ("GenericWorkload",), set()),
        ("1.37", ("DRADeviceTaintRules",), {"resource.k8s.io/v1/devicetaintrules"}),
    ],
)
async def test_rules_about_devices(release: str, gates: tuple[str, ...], want: set[str]) -> None:
    served = await Server(release, *gates).kinds()
    assert {each for each in served if each.endswith("/devicetaintrules")} == want


@pytest.mark.parametrize(("release", "code"), [("1.36", 400), ("1.37", 200)])
async def test_slices_are_listed_by_pool(release: str, code: int) -> None:
    path = "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.pool.name%3Dp"
    assert (await Server(release).get(path)).get("code", 200) == code


@pytest.mark.parametrize(
    ("release", "want"),
    [
        ("1.36", ["Name", "Created At"]),
        (
            "1.37",
            [
                "Name", "Scope", "Versions", "Created At", "Group", "Kind", "ShortNames",
                "Established",
            ],
        ),
    ],
)  # fmt: skip
async def test_columns(release: str, want: list[str]) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    table = await Server(release).get(path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [column["name"] for column in table["columnDefinitions"]] == want


@pytest.mark.parametrize(("release", "warns"), [("1.36", True), ("1.37", False)])
async def test_a_field_that_a_release_does_not_have_is_unknown(release: str, warns: bool) -> None:
    server = Server(release)
    node = {"metadata": {"name": "n"}, "spec": {"podPreemptionPolicy": {}}}
    answer = await server.post("/api/v1/nodes?fieldValidation=Warn", node)
    assert answer.status_code == 201
    assert ("podPreemptionPolicy" in answer.headers.get("warning", "")) is warns
    assert "podPreemptionPolicy" not in answer.json()["spec"]


@pytest.mark.parametrize("release", RELEASES)
def test_hollow_nodes_are_of_the_release(release: str) -> None:
    node = NodeTemplate(release=release).node("n", index=0, now=NOW)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{PATCHES[release]}-berth"


def pod(name: str = "p") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(("release", "code"), [("1.36", 201), ("1.37", 422)])
async def test_a_pod_is_bound_to_what_could_be_a_node(release: str, code: int) -> None:
    server = Server(release)
    pods = "/api/v1/namespaces/default/pods"
    await server.post(pods, pod())
    answer = await server.post(f"{pods}/p/binding", {"target": {"name": "No_Node"}})
    assert answer.status_code == code
    if code == 422:
        assert 'target.name: Invalid value: "No_Node"' in answer.json()["message"]


@pytest.mark.parametrize(
    ("release", "written", "want"),
    [
        pytest.param("1.36", {}, None, id="1.36 forgets what a write leaves out"),
        pytest.param("1.37", {}, ["gpu"], id="1.37 keeps it"),
        pytest.param(
            "1.37",
            {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "other"}]},
            ["gpu"],
            id="unless it says something else",
        ),
    ],
)
async def test_what_a_status_says_of_claims(
    release: str, written: dict[str, Any], want: list[str] | None
) -> None:
    server = Server(release)
    path = "/api/v1/namespaces/default/pods"
    made = {**pod(), "kind": "Pod", "apiVersion": "v1"}
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    stored = (await server.post(path, made)).json()
    said = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
    stored = await server.put(f"{path}/p/status", {**stored, "status": said})
    after = await server.put(f"{path}/p/status", {**stored, "status": written})
    found = [each["name"] for each in after["status"].get("resourceClaimStatuses") or []]
    assert (found or None) == want
