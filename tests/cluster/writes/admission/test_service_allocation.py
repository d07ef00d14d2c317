"""The addresses and node ports of Services."""

from typing import Any

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object
from berth.cluster.writes.admission.service_allocation import ADDRESSES, NODE_PORTS
from tests.cluster.at_once import at_once
from tests.cluster.writes.booted import TEST, Booted

SERVICES = find("", "v1", "services")


def service(name: str = "s", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}


def refused(cluster: Booted, body: Object) -> str:
    with pytest.raises(StatusError) as caught:
        cluster.create(SERVICES, body)
    return str(caught.value.message).partition("is invalid: ")[2]


def test_each_has_an_address_of_its_own() -> None:
    cluster = Booted()
    found = [cluster.create(SERVICES, service(f"s{number}"))["spec"] for number in range(400)]
    addresses = {each["clusterIP"] for each in found}
    assert len(addresses) == 400
    assert all(each["clusterIPs"] == [each["clusterIP"]] for each in found)
    assert all(address.startswith("10.96.") for address in addresses)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"clusterIP": "10.96.0.1"},
            'spec.clusterIPs: Invalid value: ["10.96.0.1"]: failed to allocate IP 10.96.0.1: '
            "provided IP is already allocated",
            id="the address of the API",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
            "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated",
            id="the node port of another",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
            "The range of valid ports is 30000-32767",
            id="no node port",
        ),
    ],
)
def test_what_is_not_to_be_had(spec: Object, message: str) -> None:
    cluster = Booted()
    taken = [{"port": 80, "nodePort": 30080}]
    cluster.create(SERVICES, service("other", type="NodePort", ports=taken))
    assert refused(cluster, service(**spec)) == message


def test_they_stay_and_are_free_again() -> None:
    cluster = Booted()
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    born = cluster.create(SERVICES, service(type="NodePort", ports=ports))
    numbers = [port["nodePort"] for port in born["spec"]["ports"]]
    assert len(set(numbers)) == 2
    assert all(number in NODE_PORTS for number in numbers)

    def forgetful(live: Object) -> Object:
        kept = {**live["spec"], "ports": ports, "type": "NodePort"}
        kept.pop("clusterIP")
        kept.pop("clusterIPs")
        return {**live, "spec": kept}

    again = cluster.update(SERVICES, "default/s", forgetful)
    assert again["spec"]["clusterIP"] == born["spec"]["clusterIP"]
    assert [port["nodePort"] for port in again["spec"]["ports"]] == numbers

    at_once(cluster.writes.delete(SERVICES, "default", "s", DeleteOptions(), TEST))
    other = {"port": 80, "nodePort": numbers[0]}
    address = born["spec"]["clusterIP"]
    cluster.create(SERVICES, service("t", type="NodePort", ports=[other], clusterIP=address))


def test_node_ports_go_with_the_type() -> None:
    cluster = Booted()
    cluster.create(SERVICES, service(type="NodePort"))

    def plain(live: Object) -> Object:
        return {**live, "spec": {**live["spec"], "type": "ClusterIP"}}

    assert "nodePort" not in cluster.update(SERVICES, "default/s", plain)["spec"]["ports"][0]


def test_a_headless_service_has_none() -> None:
    spec = Booted().create(SERVICES, service(clusterIP="None"))["spec"]
    assert spec["clusterIPs"] == ["None"]


def test_the_range_is_that_of_a_cluster_made_by_kubeadm() -> None:
    assert (str(ADDRESSES), NODE_PORTS[0], NODE_PORTS[-1]) == ("10.96.0.0/16", 30000, 32767)
