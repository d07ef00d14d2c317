"""Kinds with few rules of their own, on the whole server."""

from typing import Any

import pytest

from berth.cluster.resources import Object
from tests.cluster.access.secured import Secured

SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
FLOW_SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
MERGE = [("content-type", "application/merge-patch+json")]


@pytest.fixture
def secured() -> Secured:
    return Secured()


@pytest.mark.parametrize(
    ("patch", "generation"),
    [
        pytest.param({"metadata": {"labels": {"a": "1"}}}, 2, id="a label"),
        pytest.param({"ports": [{"port": 1}]}, 2, id="a port"),
        pytest.param({"ports": [{"port": 1}], "metadata": {"labels": {"a": "1"}}}, 2, id="both"),
        pytest.param({"metadata": {"annotations": {"a": "1"}}}, 1, id="an annotation"),
    ],
)
async def test_what_counts_as_a_change_of_an_endpoint_slice(
    secured: Secured, patch: Object, generation: int
) -> None:
    await secured.create(SLICES, {"metadata": {"name": "s"}, "addressType": "IPv4"})
    _, answer = await secured.ask("PATCH", f"{SLICES}/s", patch, headers=MERGE)
    assert answer["metadata"]["generation"] == generation


async def test_a_service_account_knows_its_secrets_by_name(secured: Secured) -> None:
    secrets: list[Any] = [{"kind": "Secret", "namespace": "x", "name": "s"}, {"uid": "1"}]
    answer = await secured.create(ACCOUNTS, {"metadata": {"name": "a"}, "secrets": secrets})
    assert answer["secrets"] == [{"name": "s"}, {}]
    # What cannot be told apart has no owner.
    assert "managedFields" not in answer["metadata"]


async def test_nodes_are_not_configured_through_the_server(secured: Secured) -> None:
    source = {"configMap": {"name": "c", "namespace": "n", "kubeletConfigKey": "k"}}
    node = {"metadata": {"name": "n"}, "spec": {"configSource": source, "unschedulable": True}}
    answer = await secured.create("/api/v1/nodes", node)
    assert answer["spec"].keys() == {"unschedulable", "taints"}


async def test_the_table_of_flow_schemas_is_in_the_order_in_which_they_are_asked(
    secured: Secured,
) -> None:
    named = {"a": 30, "b": 10, "c": 20, "d": 10}
    for name, precedence in named.items():
        spec = {"priorityLevelConfiguration": {"name": "x"}, "matchingPrecedence": precedence}
        await secured.create(FLOW_SCHEMAS, {"metadata": {"name": name}, "spec": spec})
    table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")]
    _, rows = await secured.ask("GET", FLOW_SCHEMAS, headers=table)
    in_table = [row["cells"][0] for row in rows["rows"]]
    assert [name for name in in_table if name in named] == ["b", "d", "c", "a"]
    _, items = await secured.ask("GET", FLOW_SCHEMAS)
    in_list = [item["metadata"]["name"] for item in items["items"]]
    assert [name for name in in_list if name in named] == ["a", "b", "c", "d"]


async def test_metadata_alone_has_no_annotation_that_is_a_field(secured: Secured) -> None:
    daemon_sets = "/apis/apps/v1/namespaces/default/daemonsets"
    labels = {"app": "x"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    whole = await secured.create(daemon_sets, {"metadata": {"name": "d"}, "spec": spec})
    assert whole["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": "1"}
    partial = [("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")]
    _, metadata = await secured.ask("GET", f"{daemon_sets}/d", headers=partial)
    assert "annotations" not in metadata["metadata"]


async def test_a_list_of_metadata_without_any_is_null(secured: Secured) -> None:
    partial = [("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")]
    _, answer = await secured.ask("GET", SLICES, headers=partial)
    assert answer["items"] is None
    _, indented = await secured.ask("GET", f"{SLICES}?pretty=true", headers=partial)
    assert indented == answer
    _, whole = await secured.ask("GET", SLICES)
    assert whole["items"] == []


@pytest.mark.parametrize(
    ("time", "code"),
    [
        pytest.param("2026-01-02T03:04:05.123456Z", 201, id="microseconds"),
        pytest.param("2026-01-02T03:04:05.123456+01:00", 201, id="elsewhere"),
        pytest.param("2026-01-02T03:04:05Z", 400, id="whole seconds"),
        pytest.param("2026-01-02T03:04:05.123Z", 400, id="milliseconds"),
        pytest.param("2026-02-30T03:04:05.123456Z", 400, id="no such day"),
    ],
)
async def test_times_of_leases(secured: Secured, time: str, code: int) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"metadata": {"name": "l"}, "spec": {"acquireTime": time}}
    assert (await secured.ask("POST", leases, lease))[0] == code


async def test_an_object_with_fields_that_nobody_can_own_cannot_be_applied(
    secured: Secured,
) -> None:
    await secured.create(ACCOUNTS, {"metadata": {"name": "a"}, "secrets": [{"uid": "1"}]})
    applied = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    headers = [("content-type", "application/apply-patch+yaml")]
    code, answer = await secured.ask(
        "PATCH", f"{ACCOUNTS}/a?fieldManager=m", applied, headers=headers
    )
    assert (code, answer["message"]) == (
        500,
        "failed to create manager for existing fields: failed to convert new object "
        "(default/a; /v1, Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list "
        'with keys has an element that omits all key fields ["name"] (and doesn\'t have default '
        "values for any key fields)",
    )
