"""Services: what is filled in by their type, and goes with it."""

from typing import Any

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.bodies import stored
from tests.cluster.writes.booted import Booted

SERVICE = find("", "v1", "services").strategy

SERVICES = find("", "v1", "services")
PORT = {"port": 80, "protocol": "TCP", "targetPort": 80}
PLAIN = {
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
    "ports": [PORT],
}
REACHABLE = {**PLAIN, "externalTrafficPolicy": "Cluster"}


def service(**spec: Any) -> Object:
    metadata = {"name": "s", "namespace": "default"}
    return {"metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param({}, PLAIN, id="an address in the cluster"),
        pytest.param({"type": "NodePort"}, {**REACHABLE, "type": "NodePort"}, id="node ports"),
        pytest.param(
            {"externalIPs": ["1.2.3.4"]},
            {**REACHABLE, "externalIPs": ["1.2.3.4"]},
            id="addresses outside",
        ),
        pytest.param(
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
            {
                **REACHABLE,
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Local",
                "allocateLoadBalancerNodePorts": True,
            },
            id="a load balancer",
        ),
        pytest.param(
            {"sessionAffinity": "ClientIP"},
            {
                **PLAIN,
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10_800}},
            },
            id="clients stay for three hours",
        ),
        pytest.param(
            {
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
            },
            {
                **PLAIN,
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
            },
            id="or as long as is said",
        ),
        pytest.param(
            {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}, PLAIN, id="or do not"
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a.example"},
            {
                "type": "ExternalName",
                "externalName": "a.example",
                "sessionAffinity": "None",
                "ports": [PORT],
            },
            id="a name only",
        ),
    ],
)
def test_a_service_gets_the_defaults_of_its_type(said: Object, want: Object) -> None:
    assert stored(SERVICE, service(**said))["spec"] == want


BALANCED: Object = {"type": "LoadBalancer", "loadBalancerClass": "a.example/b"}


@pytest.mark.parametrize(
    ("before", "changes", "gone"),
    [
        pytest.param(
            {},
            {"type": "ExternalName", "externalName": "a.example"},
            {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"},
            id="a name has no address",
        ),
        pytest.param(
            {"type": "NodePort"},
            {"type": "ClusterIP"},
            {"externalTrafficPolicy", "nodePort"},
            id="an address in the cluster has no node ports",
        ),
        pytest.param(
            BALANCED,
            {"type": "NodePort"},
            {"allocateLoadBalancerNodePorts", "loadBalancerClass"},
            id="node ports are no load balancer",
        ),
        pytest.param(
            {"type": "NodePort", "externalIPs": ["1.2.3.4"]},
            {"type": "ClusterIP"},
            {"nodePort"},
            id="addresses outside still are",
        ),
    ],
)
def test_what_a_type_cannot_have_goes_with_it(
    before: Object, changes: Object, gone: set[str]
) -> None:
    cluster = Booted()
    old = cluster.create(SERVICES, service(**before))
    changed = {**old, "spec": {**old["spec"], **changes}}
    new = cluster.update(SERVICES, "default/s", lambda _obj: changed)
    assert _fields(old) - _fields(new) == gone


def test_what_the_client_changes_too_is_left_to_validation() -> None:
    cluster = Booted()
    old = cluster.create(SERVICES, service(**BALANCED))
    changes = {"type": "NodePort", "loadBalancerClass": "another.example/b"}
    with pytest.raises(StatusError, match="loadBalancerClass: Forbidden: may only be used when"):
        cluster.update(
            SERVICES, "default/s", lambda _obj: {**old, "spec": {**old["spec"], **changes}}
        )


def test_a_load_balancer_may_do_without_node_ports() -> None:
    spec = Booted().create(
        SERVICES, service(type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    )["spec"]
    assert spec["ports"] == [PORT]


def _fields(obj: Object) -> set[str]:
    return {*obj["spec"], *obj["spec"]["ports"][0]}
