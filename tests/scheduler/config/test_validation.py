"""Every rule that a configuration is held to, with its message."""

import pytest

from berth.runtime.duration import Duration
from berth.scheduler.config.load import default_configuration
from berth.scheduler.config.types import (
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
)
from berth.scheduler.config.validation import validate

NO_NAME = (
    "name part must be 1 to 63 characters: alphanumeric, '-', '_' or '.', and must start"
    " and end with an alphanumeric character"
)
NO_PREFIX = "prefix part must be a DNS subdomain of at most 253 characters in lower case"
REMOVED = (
    'was invalid in version "kubescheduler.config.k8s.io/v1" '
    '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
)


def config(**fields: object) -> KubeSchedulerConfiguration:
    """The default configuration with other fields."""
    return default_configuration({}).model_copy(update=fields)


def elect(**fields: object) -> KubeSchedulerConfiguration:
    # A copy, because decoding would take zero for unset; flags can set it.
    return config(leader_election=LeaderElection().model_copy(update=fields))


def enabled(*names: str) -> PluginSet:
    return PluginSet(enabled=tuple(PluginEntry(name=name) for name in names))


def profile(
    name: str = "a",
    *,
    plugins: Plugins = Plugins(),  # noqa: B008 - is frozen
    configs: tuple[PluginConfig, ...] = (),
    percentage: int | None = None,
) -> KubeSchedulerProfile:
    return KubeSchedulerProfile(
        scheduler_name=name,
        plugins=plugins,
        plugin_config=configs,
        percentage_of_nodes_to_score=percentage,
    )


def managing(*names: str) -> Extender:
    resources = tuple(ExtenderManagedResource(name=name) for name in names)
    return Extender(url_prefix="http://x", managed_resources=resources)


SORT = Plugins(queue_sort=enabled("Sort"))


@pytest.mark.parametrize(
    "valid",
    [
        pytest.param(config(), id="the default"),
        pytest.param(config(parallelism=1), id="one at a time"),
        pytest.param(config(percentage_of_nodes_to_score=100), id="all nodes"),
        pytest.param(
            config(pod_initial_backoff_seconds=5, pod_max_backoff_seconds=5), id="equal backoffs"
        ),
        pytest.param(elect(renew_deadline=Duration.of(2.5)), id="just long enough to renew"),
        pytest.param(
            elect(leader_elect=False, lease_duration=Duration.of(-1), resource_name=""),
            id="without leader election its fields do not matter",
        ),
        pytest.param(
            config(profiles=(profile("a", percentage=0), profile("b", percentage=100))),
            id="profiles with percentages",
        ),
        pytest.param(
            config(profiles=(profile(plugins=Plugins(multi_point=enabled("EBSLimits"))),)),
            id="removed plugins are not looked for at multiPoint",
        ),
        pytest.param(
            config(
                extenders=(
                    Extender(url_prefix="http://x", bind_verb="bind"),
                    managing("example.com/a", "b.io/A_b.c"),
                    managing("a" * 240 + ".b/c"),
                )
            ),
            id="extenders",
        ),
    ],
)
def test_valid(valid: KubeSchedulerConfiguration) -> None:
    assert validate(valid) == []


@pytest.mark.parametrize(
    ("invalid", "problems"),
    [
        pytest.param(
            config(parallelism=0),
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="no parallelism",
        ),
        pytest.param(
            config(percentage_of_nodes_to_score=101),
            ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
            id="more than all nodes",
        ),
        pytest.param(
            config(pod_initial_backoff_seconds=0),
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
            id="no first backoff",
        ),
        pytest.param(
            config(pod_max_backoff_seconds=0),
            [
                "podMaxBackoffSeconds: Invalid value: 0: "
                "must be greater than or equal to PodInitialBackoffSeconds"
            ],
            id="the longest backoff is shorter than the first",
        ),
        pytest.param(
            config(client_connection=ClientConnection(burst=-1)),
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="a negative burst",
        ),
        pytest.param(
            elect(lease_duration=Duration.of(10)),
            [
                "leaderElection.leaseDuration: Invalid value: 10s: "
                "must be greater than renewDeadline (10s)"
            ],
            id="the lease ends with the deadline",
        ),
        pytest.param(
            elect(renew_deadline=Duration.of(2.4)),
            [
                "leaderElection.renewDeadline: Invalid value: 2.4s: "
                "must be greater than retryPeriod*1.2 (2s)"
            ],
            id="no time for a second attempt",
        ),
        pytest.param(
            elect(
                lease_duration=Duration(0), renew_deadline=Duration(-1), retry_period=Duration(-2)
            ),
            [
                "leaderElection.leaseDuration: Invalid value: 0s: must be greater than zero",
                "leaderElection.renewDeadline: Invalid value: -1ns: must be greater than zero",
                "leaderElection.retryPeriod: Invalid value: -2ns: must be greater than zero",
            ],
            id="durations that are none",
        ),
        pytest.param(
            elect(resource_lock="endpoints"),
            [
                'leaderElection.resourceLock: Invalid value: "endpoints": '
                'resourceLock value must be "leases"'
            ],
            id="another lock",
        ),
        pytest.param(
            elect(resource_name="", resource_namespace=""),
            [
                "leaderElection.resourceName: Required value",
                "leaderElection.resourceNamespace: Required value",
            ],
            id="a lease without a name",
        ),
        pytest.param(config(profiles=()), ["profiles: Required value"], id="no profile"),
        pytest.param(
            config(profiles=(profile(""),)),
            ["profiles[0].schedulerName: Required value"],
            id="a profile without a name",
        ),
        pytest.param(
            config(profiles=(profile("a"), profile("b"), profile("a"))),
            ['profiles[2].schedulerName: Duplicate value: "a"'],
            id="two profiles of one name",
        ),
        pytest.param(
            config(profiles=(profile(percentage=-1),)),
            ["profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
            id="a profile's percentage",
        ),
        pytest.param(
            config(profiles=(profile(plugins=Plugins(filter=enabled("A", "EBSLimits"))),)),
            [f'profiles[0].plugins.filter.enabled[1]: Invalid value: "EBSLimits": {REMOVED}'],
            id="a removed plugin",
        ),
        pytest.param(
            config(profiles=(profile(configs=(PluginConfig(name="CinderLimits"),)),)),
            [f'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": {REMOVED}'],
            id="args of a removed plugin",
        ),
        pytest.param(
            config(profiles=(profile(configs=(PluginConfig(name="A"), PluginConfig(name="A"))),)),
            ['profiles[0].pluginConfig[1]: Duplicate value: "A"'],
            id="args twice",
        ),
        pytest.param(
            config(profiles=(profile(plugins=Plugins(queue_sort=enabled("A", "B"))),)),
            [
                "profiles[0].plugins.queueSort.enabled: Invalid value: 2: "
                "only one queue sort plugin can be enabled"
            ],
            id="two queue sorts",
        ),
        pytest.param(
            config(profiles=(profile("a", plugins=SORT), profile("b"))),
            ["profiles[1].plugins.queueSort: Invalid value: {}: must be the same for all profiles"],
            id="profiles that sort differently",
        ),
        pytest.param(
            config(
                profiles=(
                    profile("a", plugins=SORT),
                    profile("b", plugins=SORT, configs=(PluginConfig(name="Sort", args={"x": 1}),)),
                )
            ),
            [
                'profiles[1].pluginConfig.args: Invalid value: {"x":1}: '
                "queueSort must be the same for all profiles"
            ],
            id="profiles that sort with other args",
        ),
        pytest.param(
            config(extenders=(Extender(filter_verb="filter"),)),
            ["extenders[0].urlPrefix: Required value"],
            id="an extender without an address",
        ),
        pytest.param(
            config(extenders=(Extender(url_prefix="http://x", prioritize_verb="p"),)),
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
            id="an extender whose scores weigh nothing",
        ),
        pytest.param(
            config(extenders=(Extender(url_prefix="http://x", bind_verb="b"),) * 2),
            [
                'extenders: Invalid value: "found 2 extenders implementing bind": '
                "only one extender can implement bind"
            ],
            id="two extenders bind",
        ),
        pytest.param(
            config(extenders=(managing("e.com/a", "e.com/b"), managing("e.com/b"))),
            [
                'extenders[1].managedResources[0].name: Invalid value: "e.com/b": '
                "duplicate extender managed resource name"
            ],
            id="a resource of two extenders",
        ),
    ],
)
def test_invalid(invalid: KubeSchedulerConfiguration, problems: list[str]) -> None:
    assert validate(invalid) == problems


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        pytest.param("", NO_NAME, id="empty"),
        pytest.param("e.com/", NO_NAME, id="nothing after the slash"),
        pytest.param("e.com/-a", NO_NAME, id="starts with a dash"),
        pytest.param("e.com/" + "a" * 64, NO_NAME, id="64 characters"),
        pytest.param("e.com/a\n", NO_NAME, id="a line break"),
        pytest.param("/a", NO_PREFIX, id="nothing before the slash"),
        pytest.param("E.com/a", NO_PREFIX, id="an upper-case domain"),
        pytest.param("a/b/c", NO_PREFIX, id="two slashes"),
        pytest.param("cpu", "is an invalid extended resource name", id="no domain"),
        pytest.param("kubernetes.io/a", "is an invalid extended resource name", id="Kubernetes'"),
        pytest.param(
            "x.kubernetes.io/a", "is an invalid extended resource name", id="below Kubernetes'"
        ),
        pytest.param(
            "requests.e.com/a", "is an invalid extended resource name", id="the prefix of quotas"
        ),
        pytest.param(
            "a" * 243 + ".b/c", "is an invalid extended resource name", id="too long for quotas"
        ),
    ],
)
def test_names_that_are_not_of_extended_resources(name: str, detail: str) -> None:
    path = "extenders[0].managedResources[0].name"
    quoted = name.replace("\n", "\\n")
    assert validate(config(extenders=(managing(name),))) == [
        f'{path}: Invalid value: "{quoted}": {detail}'
    ]
