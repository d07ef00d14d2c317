"""What pods and nodes use, by annotation and by model."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.kubelet.usage import (
    PREFIX,
    Usage,
    capacity_of,
    is_told,
    running_containers,
    usage_of_containers,
    usage_of_system,
    usage_of_volumes,
)
from berth.kube.objects.pod import Container, PodSpec

MI = 2**20


def containers(**requests: dict[str, str]) -> list[Container]:
    """Containers by name with what they request."""
    return [
        msgspec.convert({"name": name, "resources": {"requests": each}}, Container)
        for name, each in requests.items()
    ]


def told(**amounts: str) -> dict[str, str]:
    """Annotations, with underscores for dashes."""
    return {f"{PREFIX}{name.replace('_', '-')}": text for name, text in amounts.items()}


@pytest.mark.parametrize(
    ("annotations", "given_containers", "want"),
    [
        pytest.param(
            {},
            containers(c={"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"}),
            {"c": Usage(500_000_000, 512 * MI, 1024 * MI, 16, 1)},
            id="nothing told: half of the requests",
        ),
        pytest.param(
            {},
            containers(c={}),
            {"c": Usage(1_000_000, 4 * MI, 64 * 1024, 16, 1)},
            id="nothing told or requested: next to nothing",
        ),
        pytest.param(
            told(cpu="250m", memory="1Gi", ephemeral_storage="3Gi", inodes="1k", pids="7"),
            containers(c={"cpu": "1"}),
            {"c": Usage(250_000_000, 1024 * MI, 3072 * MI, 1000, 7)},
            id="all told",
        ),
        pytest.param(
            told(cpu="1", memory="100Mi"),
            containers(a={"cpu": "300m"}, b={"cpu": "100m"}, c={}),
            {
                "a": Usage(750_000_000, 34_952_533, 64 * 1024, 16, 1),
                "b": Usage(250_000_000, 34_952_533, 64 * 1024, 16, 1),
                "c": Usage(0, 34_952_534, 64 * 1024, 16, 1),
            },
            id="shared out by requests, else evenly",
        ),
        pytest.param(
            told(cpu="much", memory="-1", pids="1e400"),
            containers(c={"cpu": "2"}),
            {"c": Usage(10**9, 4 * MI, 64 * 1024, 16, 2**63 - 1)},
            id="what makes no sense counts as missing, what is too much as most",
        ),
    ],
)
def test_usage_of_containers(
    annotations: dict[str, str], given_containers: list[Container], want: dict[str, Usage]
) -> None:
    assert usage_of_containers(annotations, given_containers) == want


@given(st.integers(0, 2**50), st.lists(st.integers(0, 2**40), min_size=1, max_size=8))
def test_shares_add_up_to_what_is_told(amount: int, requests: list[int]) -> None:
    given_containers = containers(
        **{f"c{number}": {"memory": str(each)} for number, each in enumerate(requests)}
    )
    used = usage_of_containers(told(memory=str(amount)), given_containers)

    assert sum(each.memory for each in used.values()) == amount
    assert all(each.memory >= 0 for each in used.values())


def test_sidecars_run_beside_containers_and_other_init_containers_do_not() -> None:
    spec: dict[str, Any] = {
        "containers": [{"name": "main"}],
        "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
    }
    found = running_containers(msgspec.convert(spec, PodSpec))
    assert [each.name for each in found] == ["proxy", "main"]


def test_volumes_are_told_by_name() -> None:
    annotations = told(volume_data="1Gi", memory="1Gi") | {f"{PREFIX}volume-bad": "?"}
    assert usage_of_volumes(annotations) == {"data": 1024 * MI}


def test_the_system_uses_two_percent_unless_told() -> None:
    capacity = capacity_of({"cpu": "4", "memory": "1000Mi", "pods": "110"})

    assert usage_of_system({}, capacity) == Usage(80_000_000, 20 * MI, 0, 131_072, 655)
    assert usage_of_system(told(memory="900Mi"), capacity).memory == 900 * MI


def test_whether_anything_is_told() -> None:
    assert is_told(told(cpu="1"))
    assert not is_told({"berth.dev/run-seconds": "1"})
