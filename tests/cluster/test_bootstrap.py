"""What a cluster says of itself from the start."""

from berth.cluster.bootstrap import bootstrap, publish
from berth.cluster.kinds.builtin import RESOURCES
from tests.cluster.serving import NOW_TEXT, Serving

LATER = "2030-01-01T00:00:00Z"


async def test_the_addresses_of_services_are_ready_once() -> None:
    serving = Serving(resources=RESOURCES)
    await bootstrap(serving.server.writes)
    for now in (NOW_TEXT, LATER):  # the second time as after a restart
        await publish(serving.server.writes, "127.0.0.1", 6443, now=now)
    path = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"
    found = await serving.get(path)
    assert found["spec"] == {"cidrs": ["10.96.0.0/16"]}
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    assert condition["lastTransitionTime"] == NOW_TEXT


async def test_who_asks_for_the_server_is_led_to_it() -> None:
    serving = Serving(resources=RESOURCES)
    await bootstrap(serving.server.writes)
    await publish(serving.server.writes, "fd00::1", 6443, now=NOW_TEXT)
    in_default = "namespaces/default"
    whole = await serving.get(f"/api/v1/{in_default}/endpoints/kubernetes")
    assert whole["subsets"] == [
        {
            "addresses": [{"ip": "fd00::1"}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        }
    ]
    slice_ = f"/apis/discovery.k8s.io/v1/{in_default}/endpointslices/kubernetes"
    assert (await serving.get(slice_))["addressType"] == "IPv6"


async def test_the_roles_are_those_of_a_real_server() -> None:
    """Of 1.36.2, without what a vendor adds: counted in its recorded answers."""
    serving = Serving(resources=RESOURCES)
    await bootstrap(serving.server.writes)
    counts = {}
    for kind in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
        items = (await serving.get(f"/apis/rbac.authorization.k8s.io/v1/{kind}"))["items"]
        counts[kind] = len(items)
        for item in items:
            metadata = item["metadata"]
            assert metadata["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
            assert metadata["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] == "true"
    assert counts == {"clusterroles": 69, "clusterrolebindings": 50, "roles": 7, "rolebindings": 7}
