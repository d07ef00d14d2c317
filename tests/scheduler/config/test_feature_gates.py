"""--feature-gates: what can be turned, what is refused, what is not ours."""

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from berth.cli.flags import kube_scheduler
from berth.cli.flags.kube_scheduler import apply_flags
from berth.cli.flags.versions import with_versions
from berth.runtime.release import LATEST, RELEASES, EffectiveVersion
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.feature_gates import (
    CONSULTED,
    OWN,
    TURNABLE,
    default_gates,
    effective_gates,
    enabled_features,
    features_of,
    options,
    server_features,
    unmet,
)
from berth.scheduler.config.kube_features import DEPENDENCIES, FEATURE_GATES, STAGES, Gate
from berth.scheduler.config.load import default_configuration, load
from berth.scheduler.config.types import API_VERSION, KubeSchedulerConfiguration
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE

_METRICS: Final = Path(__file__).parents[1] / "metrics/recorded/metrics.jsonl"
RECORDED: Final[dict[str, Any]] = next(
    family
    for family in map(json.loads, _METRICS.read_text(encoding="utf-8").splitlines())
    if family["name"] == "kubernetes_feature_enabled"
)
"""What kube-scheduler 1.36.2 tells of its gates: the names of the first 25, and all stages."""


LIKE_1_36: Final = EffectiveVersion.of("1.36")


def changed(given: dict[str, bool]) -> dict[str, bool]:
    gates, known = effective_gates(given), default_gates()
    return {name: gate.enabled for name, gate in gates.items() if gate != known[name]}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"ComponentFlagz": False}, {"ComponentFlagz": False}, id="one that acts"),
        pytest.param({"SchedulerAsyncPreemption": True}, {}, id="its default"),
        pytest.param({"SchedulerQueueingHints": True}, {}, id="locked, as it is locked"),
        pytest.param(
            {"DRAResourceClaimGranularStatusAuthorization": False},
            {"DRAResourceClaimGranularStatusAuthorization": False},
            id="one of the API server",
        ),
        pytest.param({"AllAlpha": False}, {}, id="all alpha ones off, as they are"),
        pytest.param(
            {"UserNamespacesHostNetworkSupport": True},
            {"UserNamespacesHostNetworkSupport": True},
            id="one of the kubelet",
        ),
    ],
)
def test_gates(given: dict[str, bool], want: dict[str, bool]) -> None:
    assert changed(given) == want


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        pytest.param(
            {"NodeDeclaredFeatures": False},
            ["cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true"],
            id="locked by Kubernetes",
        ),
        pytest.param(
            {"CoordinatedLeaderElection": True},
            ["cannot set feature gate CoordinatedLeaderElection to true: berth has it false only"],
            id="not to be had",
        ),
        pytest.param(
            {"SchedulerAsyncPremption": True},
            ["unrecognized feature gate: SchedulerAsyncPremption; is SchedulerAsyncPreemption"
             " meant?"],
            id="a typing error",
        ),
        pytest.param({"Nope": True}, ["unrecognized feature gate: Nope"], id="no gate at all"),
        pytest.param(
            {"DRAAdminAccess": False, "NativeHistograms": True},
            ["cannot set feature gate DRAAdminAccess to false, feature is locked to true",
             "cannot set feature gate NativeHistograms to true: berth has it false only"],
            id="all of them are told",
        ),
    ],
)  # fmt: skip
def test_refused(given: dict[str, bool], problems: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        effective_gates(given)
    assert list(caught.value.problems) == problems


def problems_of(given: dict[str, bool], version: EffectiveVersion = LATEST) -> list[str]:
    try:
        effective_gates(given, version)
    except ConfigError as exc:
        return list(exc.problems)
    return []


@pytest.mark.parametrize("release", RELEASES)
def test_all_gates_of_a_stage_but_one_named_otherwise(release: str) -> None:
    version, gates = EffectiveVersion.of(release), FEATURE_GATES[release]
    refused = {name for name in CONSULTED - TURNABLE if name in gates}
    refused = {name for name in refused if gates[name].stage == "ALPHA"}
    off = dict.fromkeys(refused, False)
    problems = problems_of({"AllAlpha": True}, version)
    assert sum("berth has it" in problem for problem in problems) == len(refused)
    assert "berth has it" not in "".join(problems_of({"AllAlpha": True, **off}, version))


def test_a_gate_of_another_component_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    gates = {"HPAScaleToZero": True, "NodeDeclaredFeatures": True, "PodDeletionCost": True}
    with_versions(KubeSchedulerConfiguration(), gates=gates)
    (record,) = caplog.records
    told = "feature gate without effect in berth: HPAScaleToZero"
    assert (record.levelno, record.message) == (logging.WARNING, told)


@pytest.mark.parametrize("value", [True, False])
def test_a_gate_that_the_release_has_no_more_is_passed_over(
    *, value: bool, caplog: pytest.LogCaptureFixture
) -> None:
    config = with_versions(KubeSchedulerConfiguration(), gates={"GangScheduling": value})
    assert caplog.messages == ["unrecognized feature gate: GangScheduling"]
    assert "GangScheduling" not in features_of(config)


@pytest.mark.parametrize(
    ("release", "gates", "on", "off"),
    [
        pytest.param(
            "1.36", {}, ["SidecarContainers"], ["StorageCapacityScoring", "DRADeviceTaintRules"],
            id="defaults of 1.36",
        ),
        pytest.param(
            "1.37", {}, ["StorageCapacityScoring", "VolumeLimitScaling", "DRADeviceTaintRules"],
            ["GenericWorkload", "GangScheduling", "DRAFractionalCapacityRange"],
            id="defaults of 1.37",
        ),
        pytest.param(
            "1.37", {"GenericWorkload": True}, ["GangScheduling", "WorkloadAwarePreemption"], [],
            id="merged gates are part of the one that took them in",
        ),
        pytest.param(
            "1.36", {"GenericWorkload": True}, [], ["GangScheduling", "WorkloadAwarePreemption"],
            id="before they are gates of their own",
        ),
    ],
)  # fmt: skip
def test_what_a_release_has_on(
    release: str, gates: dict[str, bool], on: list[str], off: list[str]
) -> None:
    features = enabled_features(gates, EffectiveVersion.of(release))
    assert [name for name in on if name not in features] == []
    assert [name for name in off if name in features] == []


def test_a_gate_that_the_release_does_not_have_yet_is_refused() -> None:
    assert problems_of({"DRADerivedAttributes": True}, LIKE_1_36) == [
        "cannot set feature gate DRADerivedAttributes to true, feature is PreAlpha at emulated"
        " version 1.36, min compatibility version 1.35"
    ]


def test_a_gate_that_is_on_when_nothing_older_has_to_be_compatible() -> None:
    gate = "DRAFractionalCapacityRange"
    assert default_gates(EffectiveVersion.of("1.37", "1.37"))[gate].enabled
    assert not default_gates(EffectiveVersion.of("1.37"))[gate].enabled


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_of_all_gates(release: str) -> None:
    gates = default_gates(EffectiveVersion.of(release))
    assert not list(unmet(gates))
    known = {name for table in FEATURE_GATES.values() for name in table}
    assert CONSULTED | (TURNABLE - OWN.keys()) | DEPENDENCIES.keys() <= known
    assert {name for names in DEPENDENCIES.values() for name in names} <= known


def test_the_gates_of_1_36_are_the_recorded_ones() -> None:
    gates = FEATURE_GATES["1.36"]
    assert list(gates)[:25] == RECORDED["values"]["name"]
    assert {gate.stage for gate in gates.values()} == set(RECORDED["values"]["stage"])


def test_the_help_of_the_flag_lists_what_can_be_turned() -> None:
    listed = [line.partition("=")[0] for line in options().split(", ")]
    assert listed == sorted(TURNABLE | STAGES.keys())
    assert "ComponentFlagz=true|false (BETA - default=true)" in options()


@pytest.mark.parametrize("enabled", [True, False])
def test_node_declared_features_is_a_default_plugin_by_its_gate(*, enabled: bool) -> None:
    dependents = "InPlacePodLevelResourcesVerticalScaling", "RestartAllContainersOnContainerExits"
    gates = ("NodeDeclaredFeatures", *dependents)
    argv = [f"--feature-gates={gate}={str(enabled).lower()}" for gate in gates]
    argv.append("--emulated-version=1.36")  # later it is locked
    options = kube_scheduler.parse(kube_scheduler.make_parser("berth run"), argv)
    adjust = partial(apply_flags, options=options)
    config = default_configuration(args_models(IN_TREE), adjust=adjust)
    plugins = [entry.name for entry in config.profiles[0].plugins.multi_point.enabled]
    assert ("NodeDeclaredFeatures" in plugins) is enabled
    assert len(plugins) == 19 + enabled


@pytest.mark.parametrize(
    ("off", "problem"),
    [
        pytest.param(
            ["GenericWorkload"],
            "GangScheduling is enabled, but depends on features that are disabled:"
            " [GenericWorkload]",
            id="one",
        ),
        pytest.param(
            ["DynamicResourceAllocation", "GenericWorkload"],
            "DRAWorkloadResourceClaims is enabled, but depends on features that are disabled:"
            " [DynamicResourceAllocation GenericWorkload]",
            id="two, in the order in which they are declared",
        ),
    ],
)
def test_what_a_gate_depends_on_must_be_on(off: list[str], problem: str) -> None:
    on = Gate("ALPHA", enabled=True)
    name = problem.split()[0]
    gates = default_gates(LIKE_1_36) | {name: on} | dict.fromkeys(off, Gate("", enabled=False))
    assert problem in list(unmet(gates))


def test_gates_of_a_file_and_those_of_the_flag_which_win() -> None:
    text = f"""
apiVersion: {API_VERSION}
kind: KubeSchedulerConfiguration
featureGates: {{TaintTolerationComparisonOperators: true, ComponentFlagz: true}}
"""
    argv = ["--feature-gates=ComponentFlagz=false"]
    options = kube_scheduler.parse(kube_scheduler.make_parser("berth run"), argv)
    adjust = partial(apply_flags, options=options)
    config = load(text, source="file", args_models=args_models(IN_TREE), adjust=adjust)
    features = features_of(config)
    assert "TaintTolerationComparisonOperators" in features
    assert "ComponentFlagz" not in features
    with pytest.raises(ConfigError, match="feature is locked to true"):
        load(
            text.replace("{Taint", "{DRAAdminAccess: false, Taint"),
            source="file",
            args_models=args_models(IN_TREE),
        )


@pytest.mark.parametrize(
    ("emulated", "release", "given", "on", "off"),
    [
        pytest.param(
            "1.36", "", {"GenericWorkload": True}, ["GenericWorkload"], ["VolumeLimitScaling"],
            id="the scheduler's release if nobody says another",
        ),
        pytest.param(
            "1.36", "1.37", {"GenericWorkload": True, "GangScheduling": True},
            ["GenericWorkload", "GangScheduling", "VolumeLimitScaling"], [],
            id="a later server, which has no such gate any more",
        ),
        pytest.param(
            "1.37", "1.36", {"GenericWorkload": True}, ["GenericWorkload"],
            ["GangScheduling", "VolumeLimitScaling"],
            id="an earlier server",
        ),
        pytest.param(
            "1.36", "1.37", {"NodeDeclaredFeatures": False}, ["NodeDeclaredFeatures"], [],
            id="a gate that is locked in the server",
        ),
    ],
)  # fmt: skip
def test_the_gates_of_a_server_of_another_release(
    emulated: str, release: str, given: dict[str, bool], on: list[str], off: list[str]
) -> None:
    config = KubeSchedulerConfiguration(feature_gates=given, emulated_version=emulated)
    features = server_features(config, release)
    assert features.version.emulation == (release or emulated)
    assert [gate for gate in on if gate not in features] == []
    assert [gate for gate in off if gate in features] == []
