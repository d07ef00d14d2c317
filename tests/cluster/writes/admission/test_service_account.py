"""ServiceAccount: who a pod is, and the token that its containers find."""

import asyncio

import pytest

from berth.cluster.access.users import ADMIN
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.writes.admission.service_account import TOKEN_PATH
from berth.cluster.writes.context import WriteContext
from tests.cluster.bodies import pod
from tests.cluster.writes.booted import PODS, Booted

ACCOUNTS = find("", "v1", "serviceaccounts")
NAMESPACES = find("", "v1", "namespaces")


@pytest.fixture
def cluster() -> Booted:
    return Booted()


def account(name: str, **more: object) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, **more}


def test_a_pod_finds_a_token_of_its_account(cluster: Booted) -> None:
    init = [{"name": "i", "image": "nginx"}]
    spec = cluster.create(PODS, pod(initContainers=init))["spec"]

    (volume,) = spec["volumes"]
    name = volume["name"]
    assert (name[:16], len(name)) == ("kube-api-access-", 21)
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
    }
    mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
    for container in (*spec["containers"], *spec["initContainers"]):
        assert container["volumeMounts"] == [mount]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


@pytest.mark.parametrize(
    ("of_pod", "of_account", "is_mounted"),
    [
        pytest.param({}, {"automountServiceAccountToken": False}, False, id="the account says no"),
        pytest.param({"automountServiceAccountToken": False}, {}, False, id="the pod says no"),
        pytest.param(
            {"automountServiceAccountToken": True},
            {"automountServiceAccountToken": False},
            True,
            id="the pod has the last word",
        ),
    ],
)
def test_whether_a_token_is_mounted(
    cluster: Booted, of_pod: Object, of_account: Object, is_mounted: bool
) -> None:
    cluster.create(ACCOUNTS, account("robot", **of_account))
    spec = cluster.create(PODS, pod(serviceAccountName="robot", **of_pod))["spec"]
    assert bool(spec.get("volumes")) is is_mounted


def test_what_is_mounted_there_already_stays(cluster: Booted) -> None:
    mine = {"name": "mine", "mountPath": TOKEN_PATH}
    containers = [{"name": "c", "image": "nginx", "volumeMounts": [mine]}]
    body = pod(volumes=[{"name": "mine", "emptyDir": {}}])
    body["spec"]["containers"] = containers
    spec = cluster.create(PODS, body)["spec"]
    assert [volume["name"] for volume in spec["volumes"]] == ["mine"]
    assert spec["containers"][0]["volumeMounts"] == [mine]


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param({}, [{"name": "registry"}], id="those of the account"),
        pytest.param(
            {"imagePullSecrets": [{"name": "own"}]}, [{"name": "own"}], id="its own come first"
        ),
    ],
)
def test_secrets_for_pulling_images(cluster: Booted, said: Object, want: list[Object]) -> None:
    cluster.create(ACCOUNTS, account("robot", imagePullSecrets=[{"name": "registry"}]))
    spec = cluster.create(PODS, pod(serviceAccountName="robot", **said))["spec"]
    assert spec["imagePullSecrets"] == want


def test_an_account_that_is_not_there(cluster: Booted) -> None:
    obj = pod(serviceAccountName="nobody")
    obj["metadata"] = {"generateName": "web-", "namespace": "default"}
    assert cluster.refused(PODS, obj) == (
        403,
        'pods "web-" is forbidden: error looking up service account default/nobody: '
        'serviceaccount "nobody" not found',
    )


def test_a_pod_of_a_kubelet_has_none(cluster: Booted) -> None:
    mirror = {"kubernetes.io/config.mirror": "x"}
    body = pod(nodeName="n")
    body["metadata"]["annotations"] = mirror
    assert "volumes" not in cluster.create(PODS, body)["spec"]
    body = pod("q", nodeName="n", serviceAccountName="default")
    body["metadata"]["annotations"] = mirror
    assert cluster.refused(PODS, body) == (
        403,
        'pods "q" is forbidden: a mirror pod may not reference service accounts',
    )


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_pod_waits_for_the_default_account_of_a_new_namespace(cluster: Booted) -> None:
    cluster.create(NAMESPACES, {"metadata": {"name": "new"}})
    writing = asyncio.ensure_future(
        cluster.writes.create(PODS, "new", pod(namespace="new"), WriteContext(ADMIN, "test"))
    )
    await settle()
    cluster.clock.advance(0.05)
    await settle()
    assert not writing.done()
    cluster.create(ACCOUNTS, {"metadata": {"name": "default", "namespace": "new"}})
    cluster.clock.advance(0.05)
    stored = await writing
    assert stored.decode()["spec"]["volumes"][0]["name"].startswith("kube-api-access-")


async def test_but_not_for_ever(cluster: Booted) -> None:
    cluster.create(NAMESPACES, {"metadata": {"name": "new"}})
    writing = asyncio.ensure_future(
        cluster.writes.create(PODS, "new", pod(namespace="new"), WriteContext(ADMIN, "test"))
    )
    await settle()
    cluster.clock.advance(2)
    with pytest.raises(StatusError) as error:
        await writing
    assert error.value.message == (
        'pods "p" is forbidden: error looking up service account new/default: '
        'serviceaccount "default" not found'
    )
