"""Which host ports a pod takes, and when they conflict (spec §4.5)."""

import pytest

from berth.kube.objects.host_ports import HostPort, conflicts, host_ports
from berth.kube.objects.pod import ContainerPort
from tests.builders import container, host_port, pod, sidecar


def test_host_ports_of_sidecars_and_containers() -> None:
    a_pod = pod(
        init_containers=[container("init", ports=[1]), sidecar(ports=[2])],
        containers=[
            container("a", ports=[host_port(3, ip="10.0.0.1", protocol="UDP"), 2]),
            container("b", ports=[ContainerPort(container_port=4)]),
            container("c", ports=[ContainerPort(container_port=5, host_port=5, protocol="")]),
        ],
    )
    assert host_ports(a_pod) == (
        HostPort("0.0.0.0", "TCP", 2),
        HostPort("10.0.0.1", "UDP", 3),
        HostPort("0.0.0.0", "TCP", 5),
    )


def test_a_pod_without_host_ports() -> None:
    assert host_ports(pod()) == ()


ANY, ONE, TWO, V6 = "0.0.0.0", "10.0.0.1", "10.0.0.2", "::"


@pytest.mark.parametrize(
    ("wanted", "used", "want"),
    [
        pytest.param(HostPort(ANY, "TCP", 80), HostPort(ANY, "TCP", 80), True, id="the same"),
        pytest.param(HostPort(ANY, "TCP", 80), HostPort(ANY, "TCP", 81), False, id="another port"),
        pytest.param(
            HostPort(ANY, "TCP", 80), HostPort(ANY, "UDP", 80), False, id="another protocol"
        ),
        pytest.param(HostPort(ANY, "TCP", 80), HostPort(ONE, "TCP", 80), True, id="all wanted"),
        pytest.param(HostPort(ONE, "TCP", 80), HostPort(ANY, "TCP", 80), True, id="all taken"),
        pytest.param(HostPort(ONE, "TCP", 80), HostPort(ONE, "TCP", 80), True, id="one address"),
        pytest.param(HostPort(ONE, "TCP", 80), HostPort(TWO, "TCP", 80), False, id="two addresses"),
        pytest.param(HostPort(V6, "TCP", 80), HostPort(ONE, "TCP", 80), False, id=":: is not all"),
    ],
)
def test_conflicts(wanted: HostPort, used: HostPort, want: bool) -> None:
    other = HostPort(ANY, "SCTP", 9)
    assert conflicts([other, wanted], [used]) is want
    assert conflicts([wanted], [HostPort(ANY, "TCP", 1), used]) is want


def test_no_ports_no_conflict() -> None:
    port = HostPort(ANY, "TCP", 80)
    assert not conflicts([], [port])
    assert not conflicts([port], [])
