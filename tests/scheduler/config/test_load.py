"""Loading a configuration: what is refused, and what is filled in."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from berth.runtime.duration import Duration
from berth.runtime.release import RELEASE
from berth.scheduler.config.decode import document
from berth.scheduler.config.defaults import read_args
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import default_configuration, from_object, load
from berth.scheduler.config.types import (
    API_VERSION,
    KIND,
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    ExtensionPoint,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginConfig,
)
from tests.scheduler.config.plugin_args import MODELS, Args, VolumeBindingArgs

HEADER = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


def loaded(
    text: str, *, models: Mapping[str, type[BaseModel]] = MODELS, known: list[str] | None = None
) -> KubeSchedulerConfiguration:
    return load(HEADER + text, source="x.yaml", args_models=models, known_plugins=known)


def problems(text: str, **how: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        loaded(text, **how)
    return list(error.value.problems)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        pytest.param("", "/, Kind=", id="an empty file"),
        pytest.param("[1]", "/, Kind=", id="a list"),
        pytest.param("kind: Pod\napiVersion: v1", "/v1, Kind=Pod", id="a pod"),
        pytest.param(f"kind: {KIND}", f"/, Kind={KIND}", id="no version"),
        pytest.param(f"apiVersion: {API_VERSION}", f"{API_VERSION}, Kind=", id="no kind"),
        pytest.param(
            f"kind: {KIND}\napiVersion: kubescheduler.config.k8s.io/v1beta3",
            f"kubescheduler.config.k8s.io/v1beta3, Kind={KIND}",
            id="an old version",
        ),
    ],
)
def test_other_kinds_are_rejected(text: str, got: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(text, source="x.yaml", args_models=MODELS)
    assert str(error.value) == f"x.yaml: couldn't decode as KubeSchedulerConfiguration, got {got}: "


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "qps: 5\nleaderElection: {leader_elect: false}",
            [
                'strict decoding error: unknown field "leaderElection.leader_elect"',
                'strict decoding error: unknown field "qps"',
            ],
            id="unknown fields, also those that only look right",
        ),
        pytest.param(
            "parallelism: 0\nparallelism: -1\nfoo: 1",
            [
                'strict decoding error: duplicate field "parallelism"',
                'strict decoding error: unknown field "foo"',
                "parallelism: Invalid value: -1: should be an integer value greater than zero",
            ],
            id="strictness and validation together",
        ),
        pytest.param(
            "profiles: [{plugins: {filter: {enabled: [{nam: A, name: A}]}}}]",
            ['strict decoding error: unknown field "profiles[0].plugins.filter.enabled[0].nam"'],
            id="deep inside",
        ),
        pytest.param(
            'parallelism: "16"',
            ['parallelism: Invalid value: "16": input should be a valid integer'],
            id="text is no number",
        ),
        pytest.param(
            "percentageOfNodesToScore: 4294967296",
            [
                "percentageOfNodesToScore: Invalid value: 4294967296: "
                "input should be less than 2147483648"
            ],
            id="33 bits",
        ),
        pytest.param(
            "enableProfiling: 1",
            ["enableProfiling: Invalid value: 1: input should be a valid boolean"],
            id="a number is no boolean, and what follows it is not to blame",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 15, retryPeriod: 2x}",
            [
                "leaderElection.leaseDuration: Invalid value: 15: input should be a valid string",
                'leaderElection.retryPeriod: Invalid value: "2x": '
                'time: unknown unit "x" in duration "2x"',
            ],
            id="what is no duration",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{weight: 3}]}}}]",
            ["profiles[0].plugins.score.enabled[0].name: Required value"],
            id="a plugin without a name",
        ),
        pytest.param(
            "extenders: [{urlPrefix: 'http://x', tlsConfig: {keyData: '?'}}]",
            [
                'extenders[0].tlsConfig.keyData: Invalid value: "REDACTED": must be base64: '
                "Only base64 data is allowed"
            ],
            id="what is not base64",
        ),
    ],
)
def test_files_are_read_strictly(text: str, want: list[str]) -> None:
    assert problems(text) == want


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(
            "{hardPodAffinityWeight: 5, hard: 1}",
            ['strict decoding error: unknown field "profiles[0].pluginConfig[0].args.hard"'],
            id="an unknown field",
        ),
        pytest.param(
            "{hardPodAffinityWeight: '5'}",
            [
                "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: "
                'Invalid value: "5": input should be a valid integer'
            ],
            id="a wrong type",
        ),
        pytest.param(
            "{kind: NodeAffinityArgs}",
            [
                "args for plugin InterPodAffinity were not of type "
                "InterPodAffinityArgs.kubescheduler.config.k8s.io, "
                "got NodeAffinityArgs.kubescheduler.config.k8s.io"
            ],
            id="another plugin's kind",
        ),
        pytest.param(
            "{apiVersion: kubescheduler.config.k8s.io/v1beta3}",
            [
                "profiles[0].pluginConfig[0].args.apiVersion: "
                'Invalid value: "kubescheduler.config.k8s.io/v1beta3": '
                'must be "kubescheduler.config.k8s.io/v1"'
            ],
            id="another version",
        ),
    ],
)
def test_args_are_read_strictly(args: str, want: list[str]) -> None:
    text = f"profiles: [{{pluginConfig: [{{name: InterPodAffinity, args: {args}}}]}}]"
    assert problems(text) == want


def test_a_value_outside_of_a_closed_set_is_told_the_set() -> None:
    args = "{scoringStrategy: {type: Best}}"
    assert problems(
        f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]"
    ) == [
        "profiles[0].pluginConfig[0].args.scoringStrategy.type: "
        'Unsupported value: "Best": supported: '
        '"LeastAllocated", "MostAllocated" or "RequestedToCapacityRatio"'
    ]


def test_every_line_names_the_source() -> None:
    with pytest.raises(ConfigError) as error:
        loaded("a: 1\nb: 2")
    assert str(error.value) == (
        'x.yaml: strict decoding error: unknown field "a"\n'
        'x.yaml: strict decoding error: unknown field "b"'
    )


def test_unknown_plugins_are_found_where_the_file_names_them() -> None:
    text = """
profiles:
- plugins:
    multiPoint: {enabled: [{name: NodeName}, {name: Mine}]}
    score: {enabled: [{name: Theirs}], disabled: [{name: Gone}]}
"""
    assert problems(text, known=["NodeName"]) == [
        'profiles[0].plugins.score.enabled[0].name: Not found: "Theirs"',
        'profiles[0].plugins.multiPoint.enabled[1].name: Not found: "Mine"',
    ]


def test_a_removed_plugin_is_told_apart_from_an_unknown_one() -> None:
    text = """
profiles:
- plugins:
    multiPoint: {enabled: [{name: EBSLimits}]}
    score: {enabled: [{name: EBSLimits}]}
"""
    removed = "kubescheduler.config.k8s.io/v1"
    assert problems(text, known=[]) == [
        'profiles[0].plugins.multiPoint.enabled[0].name: Not found: "EBSLimits"',
        'profiles[0].plugins.score.enabled[0]: Invalid value: "EBSLimits": '
        f'was invalid in version "{removed}" (KubeSchedulerConfiguration is version "{removed}")',
    ]


def test_null_is_absent() -> None:
    assert loaded("parallelism:\nprofiles: null\nleaderElection: {leaseDuration: ~}") == loaded("")


def test_the_defaults_of_everything_but_profiles() -> None:
    assert default_configuration(MODELS).model_copy(update={"profiles": ()}) == (
        KubeSchedulerConfiguration(
            parallelism=16,
            leader_election=LeaderElection(
                leader_elect=True,
                lease_duration=Duration.of(15),
                renew_deadline=Duration.of(10),
                retry_period=Duration.of(2),
                resource_lock="leases",
                resource_name="kube-scheduler",
                resource_namespace="kube-system",
            ),
            client_connection=ClientConnection(
                kubeconfig="",
                accept_content_types="",
                content_type="application/vnd.kubernetes.protobuf",
                qps=50.0,
                burst=100,
            ),
            enable_profiling=True,
            enable_contention_profiling=True,
            percentage_of_nodes_to_score=0,
            pod_initial_backoff_seconds=1,
            pod_max_backoff_seconds=10,
            profiles=(),
            extenders=(),
            delay_cache_until_active=False,
            emulated_version=RELEASE,
        )
    )


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        pytest.param("", False, id="not mentioned"),
        pytest.param("clientConnection: {contentType: application/json}", False, id="others are"),
        pytest.param("clientConnection: {qps: 50}", True, id="set to the default"),
        pytest.param("clientConnection: {burst: 7}", True, id="burst alone"),
        pytest.param("clientConnection: {qps: null}", False, id="null is unset"),
    ],
)
def test_whether_somebody_has_set_a_rate_limit(text: str, *, limits: bool) -> None:
    assert loaded(text).client_connection.limits_rate == limits


def test_zero_is_unset_where_the_api_says_so() -> None:
    text = """
leaderElection: {leaseDuration: 0s, renewDeadline: "0", retryPeriod: 0ns, resourceLock: "",
  resourceName: "", resourceNamespace: "", leaderElect: false}
clientConnection: {qps: 0, burst: 0, contentType: ""}
"""
    config = loaded(text)
    assert config.leader_election == LeaderElection(leader_elect=False)
    assert config.client_connection == ClientConnection()


@pytest.mark.parametrize(
    ("text", "contention"),
    [
        pytest.param("", True, id="on with profiling"),
        pytest.param("enableProfiling: false", False, id="off without profiling"),
        pytest.param("enableContentionProfiling: false", False, id="off by itself"),
        pytest.param(
            "enableProfiling: false\nenableContentionProfiling: true", True, id="on by itself"
        ),
    ],
)
def test_contention_profiling_follows_profiling(text: str, contention: bool) -> None:
    assert loaded(text).enable_contention_profiling is contention


@pytest.mark.parametrize(
    ("profiles", "names"),
    [
        pytest.param("", ["default-scheduler"], id="no profile"),
        pytest.param("profiles: []", ["default-scheduler"], id="an empty list"),
        pytest.param("profiles: [{}]", ["default-scheduler"], id="one without a name"),
        pytest.param("profiles: [{schedulerName: mine}]", ["mine"], id="one with a name"),
        pytest.param(
            "profiles: [{schedulerName: b}, {schedulerName: a}]", ["b", "a"], id="two with names"
        ),
    ],
)
def test_names_of_profiles(profiles: str, names: list[str]) -> None:
    assert [profile.scheduler_name for profile in loaded(profiles).profiles] == names


@pytest.mark.parametrize(
    ("profiles", "want"),
    [
        pytest.param(
            "[{schedulerName: a}, {}]",
            ["profiles[1].schedulerName: Required value"],
            id="of several none is the default",
        ),
        pytest.param(
            "[{schedulerName: ''}]",
            ["profiles[0].schedulerName: Required value"],
            id="an empty name is a name",
        ),
    ],
)
def test_profiles_need_names(profiles: str, want: list[str]) -> None:
    assert problems(f"profiles: {profiles}") == want


def test_args_are_completed_and_those_of_other_plugins_kept() -> None:
    text = """
profiles:
- plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: Mine}, {name: VolumeBinding},
    {name: InterPodAffinity}, {name: NodeName}]}}
  pluginConfig:
  - {name: Mine, args: {x: [1]}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 7}}
"""
    (profile,) = loaded(text).profiles
    assert profile.plugin_config == (
        PluginConfig(name="Mine", args={"x": [1]}),
        PluginConfig(
            name="VolumeBinding",
            args={"kind": "VolumeBindingArgs", "apiVersion": API_VERSION, "bindTimeoutSeconds": 7},
        ),
        PluginConfig(
            name="InterPodAffinity",
            args={
                "kind": "InterPodAffinityArgs",
                "apiVersion": API_VERSION,
                "hardPodAffinityWeight": 1,
                "ignorePreferredTermsOfExistingPods": False,
            },
        ),
    )


def test_complete_args_become_what_the_plugin_is_given() -> None:
    (profile,) = loaded("").profiles
    args = read_args(profile.args("VolumeBinding"), VolumeBindingArgs)
    assert args == VolumeBindingArgs(bind_timeout_seconds=600)


class NeedyArgs(Args):
    size: int


def test_args_that_cannot_do_without_a_value_are_missed() -> None:
    text = "profiles: [{plugins: {multiPoint: {enabled: [{name: Needy}]}}}]"
    assert problems(text, models={"Needy": NeedyArgs}) == [
        "profiles[0].pluginConfig[0].args.size: Required value"
    ]


def test_an_extender() -> None:
    text = """
extenders:
- urlPrefix: https://extender:8888/
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 5
  enableHTTPS: true
  tlsConfig: {insecure: true, caData: YWJj}
  httpTimeout: 0s
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
"""
    assert loaded(text).extenders == (
        Extender(
            url_prefix="https://extender:8888/",
            filter_verb="filter",
            prioritize_verb="prioritize",
            weight=5,
            enable_https=True,
            tls_config=ExtenderTLSConfig(insecure=True, ca_data=b"abc"),
            http_timeout=Duration.of(5),
            managed_resources=(
                ExtenderManagedResource(name="example.com/gpu", ignored_by_scheduler=True),
            ),
        ),
    )


def test_an_object_loads_as_its_text_does_and_stays_as_it_is() -> None:
    obj = {"apiVersion": API_VERSION, "kind": KIND, "parallelism": 3, "profiles": None}
    before = json.dumps(obj)
    config = from_object(obj, source="x", args_models=MODELS)
    assert (config, json.dumps(obj)) == (loaded("parallelism: 3"), before)


def test_what_is_decoded_already_keeps_its_duplicates() -> None:
    text = f"apiVersion: {API_VERSION}\nkind: {KIND}\nparallelism: 1\nparallelism: 3\n"
    with pytest.raises(ConfigError, match='duplicate field "parallelism"'):
        load(document(text, source="x"), source="x", args_models=MODELS)


GROUPS_OFF = """profiles:
- plugins:
    podGroupPostFilter:
      disabled: [{name: DefaultPreemption}]
"""


@pytest.mark.parametrize(
    ("release", "text", "unknown"),
    [
        pytest.param("1.37", GROUPS_OFF, False, id="since 1.37"),
        pytest.param("1.36", GROUPS_OFF, True, id="not in 1.36"),
        pytest.param("1.36", "", False, id="1.36, without it"),
    ],
)
def test_plugins_for_groups_that_do_not_fit(release: str, text: str, unknown: bool) -> None:
    text += f'emulatedVersion: "{release}"\n'
    if unknown:
        field = "profiles[0].plugins.podGroupPostFilter"
        assert problems(text) == [f'strict decoding error: unknown field "{field}"']
        return
    [profile] = loaded(text).profiles
    written = profile.plugins.model_dump(mode="json", by_alias=True)
    assert ("podGroupPostFilter" in written) is (release == "1.37")
    disabled = profile.plugins.at(ExtensionPoint.POD_GROUP_POST_FILTER).disabled
    assert [entry.name for entry in disabled] == (["DefaultPreemption"] if text[0] == "p" else [])
