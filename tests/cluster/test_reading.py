"""Objects that cannot be read, as an earlier version may have stored them, beside others."""

from typing import Any

import msgspec
import pytest

from berth.cluster.controllers.informers import reader
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.dynamic_admission.policies import read_policies
from berth.cluster.dynamic_admission.webhooks import read_webhooks
from berth.cluster.kinds.builtin import RESOURCES, find
from berth.cluster.object_views import ObjectView
from berth.cluster.pods.controllers import PodView
from berth.cluster.reading import readable
from berth.cluster.resources import Object
from berth.cluster.storage.stored import Stored
from tests.cluster.bodies import pod, workload
from tests.cluster.objects import pod_view
from tests.cluster.serving import Serving
from tests.cluster.writes.booted import Booted

DEPLOYMENTS = find("apps", "v1", "deployments")
PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def kept(name: str, **parts: Any) -> Stored:
    return Stored({"metadata": {"name": name}, **parts}, 1)


async def test_lists_show_the_others() -> None:
    serving = Serving(resources=RESOURCES)
    for name, spec in (("a", {}), ("b", {"containers": 3}), ("c", None)):
        metadata = {"name": name, "namespace": "default", "creationTimestamp": "never"}
        serving.store.create("pods", {"metadata": metadata, "spec": spec})
    _, table = await serving.request("GET", PODS, accept=TABLE)
    assert [row["cells"][0] for row in table["rows"]] == ["a", "b", "c"]
    code, found = await serving.request("GET", f"{PODS}?fieldSelector=spec.nodeName!%3Dn")
    assert (code, len(found["items"])) == (200, 3)


UNSET: Object = {
    "type": "",
    "status": "",
    **dict.fromkeys(("lastTransitionTime", "lastUpdateTime")),
}
"""A condition of a Deployment of which nothing is said."""


@pytest.mark.parametrize(
    ("spec", "status", "read"),
    [
        pytest.param(
            {"replicas": None, "selector": {"matchLabels": {"a": None}}},
            {"conditions": [None, {"type": None, "status": "True"}]},
            (
                {
                    "selector": {"matchLabels": {"a": ""}},
                    "strategy": {},
                    "template": {"metadata": {}, "spec": {"containers": None}},
                },
                {"conditions": [UNSET, {**UNSET, "status": "True"}]},
            ),
            id="nulls are empty",
        ),
        pytest.param({"replicas": "two"}, {}, None, id="a text is no number"),
        pytest.param({"template": []}, {}, None, id="a list is no template"),
    ],
)
def test_controllers_read_as_go_does(
    spec: Object, status: Object, read: tuple[Object, Object] | None
) -> None:
    body = workload()
    body["metadata"]["uid"] = "u"
    raw = msgspec.json.encode({**body, "spec": spec, "status": status})
    decode = reader(DEPLOYMENTS, WorkloadView)
    if read is None:
        with pytest.raises(ValueError, match="cannot unmarshal"):
            decode(raw)
    else:
        view = decode(raw)
        assert (view.spec, view.status) == read


def test_a_condition_of_a_pod_without_type_does_not_hide_the_pod() -> None:
    """From a server that is not ours."""
    metadata = {"name": "p", "uid": "u"}
    raw = msgspec.json.encode({"metadata": metadata, "status": {"conditions": [{}, None]}})
    view = reader(find("", "v1", "pods"), PodView)(raw)
    assert [condition.type for condition in view.status.conditions or ()] == ["", ""]


def test_what_one_controller_cannot_hear_the_others_hear(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table: Table[PodView] = Table()
    heard: list[ObjectView | None] = []

    def stumble(_old: ObjectView | None, _new: ObjectView | None) -> None:
        raise KeyError("type")

    table.listen(stumble)
    table.listen(lambda _old, new: heard.append(new))
    table.on_add(added := pod_view("p"))
    assert heard == [added]
    assert [vars(record)["object"] for record in caplog.records] == ["default/p"]


@pytest.mark.parametrize(
    ("storage_key", "parts"),
    [
        ("services", {"spec": {"ports": 3}}),
        ("services", {"spec": {"ports": [None], "clusterIP": None}}),
        ("limitranges", {"spec": None}),
        ("priorityclasses.scheduling.k8s.io", {"globalDefault": True, "value": "high"}),
        ("customresourcedefinitions.apiextensions.k8s.io", {"spec": 3}),
        ("customresourcedefinitions.apiextensions.k8s.io", {"status": {"conditions": [None]}}),
        ("poddisruptionbudgets.policy", {"spec": {"selector": 3}}),
        ("clusterrolebindings.rbac.authorization.k8s.io", {"subjects": 3}),
        ("validatingwebhookconfigurations.admissionregistration.k8s.io", {"webhooks": 3}),
        ("mutatingadmissionpolicies.admissionregistration.k8s.io", {"spec": 3}),
        ("storageclasses.storage.k8s.io", {"parameters": 3}),
        ("apiservices.apiregistration.k8s.io", {"spec": 3}),
    ],
)
async def test_a_server_starts_and_writes_beside_it(storage_key: str, parts: Object) -> None:
    """The store of a server of an earlier version is given to the next one."""
    store = Booted().store
    kind = next(each for each in RESOURCES if each.storage_key == storage_key)
    namespace = {"namespace": "default"} if kind.namespaced else {}
    store.create(storage_key, {"metadata": {"name": "bad", **namespace}, **parts})
    cluster = Booted(store=store)
    cluster.create(find("", "v1", "pods"), pod())
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"ports": [{"port": 1}]}}
    cluster.create(find("", "v1", "services"), service)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "c", "namespace": "default"}
    claims = find("", "v1", "persistentvolumeclaims")
    cluster.create(claims, {"metadata": metadata, "spec": claim})


def test_webhooks_and_policies_beside_others() -> None:
    hooks = [kept("a", webhooks=3), kept("b", webhooks=[{"name": "b.example.com"}])]
    assert [webhook.name for webhook in read_webhooks(hooks)] == ["b.example.com"]
    policies = [kept("a", spec=3), kept("b", spec={})]
    bindings = [kept(name, spec={"policyName": name}) for name in "ab"]
    assert [
        read_policy.name for read_policy in read_policies(policies, [kept("c", spec=3), *bindings])
    ] == ["b"]


def test_who_cannot_be_read_is_named(caplog: pytest.LogCaptureFixture) -> None:
    read = msgspec.json.Decoder(dict[str, dict[str, str]]).decode
    found = readable([kept("a", spec=3), kept("b", spec={"x": "y"})], read, "things")
    assert [stored.name for stored, _ in found] == ["b"]
    [said] = caplog.records
    assert (vars(said)["kind"], vars(said)["object"]) == ("things", "a")
