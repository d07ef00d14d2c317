"""KubeletConfiguration files."""

import logging
from pathlib import Path
from typing import Any

import pytest

from berth.cluster.kubelet.configuration import (
    API_VERSION,
    KIND,
    WITHOUT_EFFECT,
    KubeletConfiguration,
    KubeletConfigurationError,
    from_object,
    read,
)
from berth.cluster.kubelet.eviction.signals import Signal


def configured(**fields: Any) -> KubeletConfiguration:
    return from_object({"apiVersion": API_VERSION, "kind": KIND, **fields}, source="f.yaml")


def signals(given: KubeletConfiguration) -> list[tuple[str, float]]:
    """Return signals and grace periods of the thresholds."""
    return [(str(threshold.signal), threshold.grace_seconds) for threshold in given.thresholds]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.yaml"
    path.write_text(
        """
        apiVersion: kubelet.config.k8s.io/v1beta1
        kind: KubeletConfiguration
        evictionHard: {memory.available: 500Mi}
        evictionSoft: {nodefs.available: 15%}
        evictionSoftGracePeriod: {nodefs.available: 1m30s}
        evictionPressureTransitionPeriod: 30s
        evictionMaxPodGracePeriod: 60
        imageGCHighThresholdPercent: 70
        imageGCLowThresholdPercent: 60
        maxPods: 50
        """
    )

    found = read(path)

    assert signals(found) == [
        ("memory.available", 0.0),
        ("nodefs.available", 90.0),
        ("allocatableMemory.available", 0.0),
    ]
    assert found.pressure_transition_seconds == 30.0
    assert (found.eviction_max_pod_grace_period, found.max_pods) == (60, 50)
    assert found.image_gc_high_threshold_percent == 70


def test_the_defaults_are_those_of_a_kubelet() -> None:
    found = configured(evictionPressureTransitionPeriod="0s")

    assert [signal for signal, _ in signals(found)] == [
        "memory.available",
        "nodefs.available",
        "nodefs.inodesFree",
        "imagefs.available",
        "imagefs.inodesFree",
        "allocatableMemory.available",
    ]
    assert found.pressure_transition_seconds == 300.0
    assert not found.has_thresholds


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        pytest.param({}, 2, id="others are off: this one, and all pods together"),
        pytest.param({"enforceNodeAllocatable": ["none"]}, 1, id="pods together are not watched"),
        pytest.param({"mergeDefaultEvictionSettings": True}, 6, id="others keep their defaults"),
    ],
)
def test_who_sets_one_hard_threshold_sets_all(fields: dict[str, Any], number: int) -> None:
    found = configured(evictionHard={"memory.available": "1Gi"}, **fields)

    assert len(found.thresholds) == number
    [memory] = [
        threshold for threshold in found.thresholds if threshold.signal is Signal.MEMORY_AVAILABLE
    ]
    assert str(memory.value.of(0)) == "1Gi"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"evictionHards": {}},
            'f.yaml: strict decoding error: unknown field "evictionHards"',
            id="an unknown field",
        ),
        pytest.param(
            {"evictionHard": {"pid.available": 100}},
            "f.yaml: evictionHard.pid.available: input should be a valid string",
            id="a number where a string is needed",
        ),
        pytest.param(
            {"evictionPressureTransitionPeriod": "soon"},
            'f.yaml: evictionPressureTransitionPeriod: time: invalid duration "soon"',
            id="no duration",
        ),
        pytest.param(
            {"evictionHard": {"memory.free": "1Gi"}},
            "f.yaml: unsupported eviction signal memory.free",
            id="no such signal",
        ),
        pytest.param(
            {"nodeLeaseDurationSeconds": 0, "maxPods": -1},
            "f.yaml: invalid configuration: nodeLeaseDurationSeconds must be greater than 0\n"
            "f.yaml: invalid configuration: maxPods (--max-pods) -1 must not be a negative number",
            id="all problems at once",
        ),
        pytest.param(
            {"imageGCHighThresholdPercent": 101, "imageGCLowThresholdPercent": 80},
            "f.yaml: invalid configuration: imageGCHighThresholdPercent "
            "(--image-gc-high-threshold) 101 must be between 0 and 100, inclusive",
            id="more than all",
        ),
        pytest.param(
            {"imageGCHighThresholdPercent": 80},
            "f.yaml: invalid configuration: imageGCLowThresholdPercent "
            "(--image-gc-low-threshold) 80 must be less than imageGCHighThresholdPercent "
            "(--image-gc-high-threshold) 80",
            id="low as high",
        ),
        pytest.param(
            {"systemReserved": {"gpu": "1"}},
            'f.yaml: systemReserved: cannot reserve "gpu" resource',
            id="what cannot be reserved",
        ),
        pytest.param(
            {"kubeReserved": {"memory": "-1Gi"}},
            "f.yaml: kubeReserved.memory: quantity '-1Gi': must not be negative",
            id="less than nothing reserved",
        ),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(KubeletConfigurationError) as caught:
        configured(**fields)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "got nothing", id="empty"),
        pytest.param("apiVersion: v1\nkind: Pod", "got v1 Pod", id="something else"),
        pytest.param("[", "not YAML", id="no YAML"),
    ],
)
def test_what_is_no_kubelet_configuration_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    with pytest.raises(KubeletConfigurationError, match=message):
        read(path)


def test_fields_that_a_hollow_kubelet_cannot_obey_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        configured(cgroupDriver="systemd", clusterDNS=["10.96.0.10"], maxPods=5)

    assert [record.__dict__["fields"] for record in caplog.records] == [
        ["cgroupDriver", "clusterDNS"]
    ]


def test_no_field_is_both_obeyed_and_without_effect() -> None:
    obeyed = {model_field.alias for model_field in KubeletConfiguration.model_fields.values()}
    assert not obeyed & WITHOUT_EFFECT
