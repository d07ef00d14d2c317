"""Validation of a complete configuration (spec §7.1, §9.1, §10.7).

Each function returns its findings, in Kubernetes' words and with the field's path in front.
"""

import re
from collections.abc import Collection, Iterator

from berth.kube.field_errors import join
from berth.scheduler.config import errors
from berth.scheduler.config.types import (
    API_VERSION,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
)

REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins of older versions of the API (spec §1.1)."""

_REMOVED = (
    f'was invalid in version "{API_VERSION}" '
    f'(KubeSchedulerConfiguration is version "{API_VERSION}")'
)
_JITTER_FACTOR = 1.2  # of leader election: retries wait up to this much longer
_NAME = re.compile(r"(?=.{1,63}\Z)([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\Z")


def validate(config: KubeSchedulerConfiguration) -> list[str]:
    """Return everything that is wrong with *config*, which has its defaults."""
    return [
        *_client_connection(config),
        *_leader_election(config.leader_election),
        *_limits(config),
        *_profiles(config.profiles),
        *_extenders(config.extenders),
    ]


def unknown_plugins(config: KubeSchedulerConfiguration, known: Collection[str]) -> list[str]:
    """Return a finding for each enabled plugin that is not *known*."""
    return [
        errors.not_found(join("profiles", i, "plugins", point, "enabled", j, "name"), entry.name)
        for i, profile in enumerate(config.profiles)
        for point, plugin_set in profile.plugins.sets().items()
        for j, entry in enumerate(plugin_set.enabled)
        # Of removed ones validate() has more to say, except here.
        if entry.name not in known and (entry.name not in REMOVED_PLUGINS or point == "multiPoint")
    ]


def _client_connection(config: KubeSchedulerConfiguration) -> Iterator[str]:
    burst = config.client_connection.burst
    if burst < 0:
        yield errors.invalid("clientConnection.burst", burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[str]:
    if not election.leader_elect:
        return
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for field, duration in durations.items():
        if duration.nanoseconds <= 0:
            yield errors.invalid(f"leaderElection.{field}", duration, "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        detail = f"must be greater than renewDeadline ({election.renew_deadline})"
        yield errors.invalid("leaderElection.leaseDuration", election.lease_duration, detail)
    if election.renew_deadline.nanoseconds <= _JITTER_FACTOR * election.retry_period.nanoseconds:
        detail = f"must be greater than retryPeriod*{_JITTER_FACTOR} ({election.retry_period})"
        yield errors.invalid("leaderElection.renewDeadline", election.renew_deadline, detail)
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        yield errors.invalid("leaderElection.resourceLock", election.resource_lock, detail)
    if not election.resource_name:
        yield errors.required("leaderElection.resourceName")
    if not election.resource_namespace:
        yield errors.required("leaderElection.resourceNamespace")


def _limits(config: KubeSchedulerConfiguration) -> Iterator[str]:
    if config.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        yield errors.invalid("parallelism", config.parallelism, detail)
    yield from _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    initial, maximum = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        yield errors.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if maximum < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield errors.invalid("podMaxBackoffSeconds", maximum, detail)


def _percentage(path: str, percentage: int | None) -> Iterator[str]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield errors.invalid(path, percentage, "not in valid range [0-100]")


def _profiles(profiles: tuple[KubeSchedulerProfile, ...]) -> Iterator[str]:
    if not profiles:
        yield errors.required("profiles")
        return
    names: set[str] = set()
    for i, profile in enumerate(profiles):
        path = join("profiles", i)
        if not profile.scheduler_name:
            yield errors.required(f"{path}.schedulerName")
        elif profile.scheduler_name in names:
            yield errors.duplicate(f"{path}.schedulerName", profile.scheduler_name)
        names.add(profile.scheduler_name)
        yield from _percentage(
            f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score
        )
        yield from _plugins(path, profile)
    yield from _queue_sort(profiles)


def _plugins(path: str, profile: KubeSchedulerProfile) -> Iterator[str]:
    for point, plugin_set in profile.plugins.sets().items():
        if point == "multiPoint":
            continue  # as kube-scheduler; there a removed plugin is just an unknown one
        for i, entry in enumerate(plugin_set.enabled):
            if entry.name in REMOVED_PLUGINS:
                where = join(path, "plugins", point, "enabled", i)
                yield errors.invalid(where, entry.name, _REMOVED)
    configured: set[str] = set()
    for i, config in enumerate(profile.plugin_config):
        where = join(path, "pluginConfig", i)
        if config.name in configured:
            yield errors.duplicate(where, config.name)
        if config.name in REMOVED_PLUGINS:
            yield errors.invalid(where, config.name, _REMOVED)
        configured.add(config.name)


def _queue_sort(profiles: tuple[KubeSchedulerProfile, ...]) -> Iterator[str]:
    """All profiles share the queue, so they must sort it alike.

    Here only what is set explicitly is compared; what multiPoint adds is known after expansion.
    """
    first, *others = profiles
    sets = first.plugins.queue_sort
    if len(sets.enabled) > 1:
        detail = "only one queue sort plugin can be enabled"
        yield errors.invalid("profiles[0].plugins.queueSort.enabled", len(sets.enabled), detail)
    name = sets.enabled[0].name if sets.enabled else ""
    for i, profile in enumerate(others, start=1):
        path = join("profiles", i)
        if profile.plugins.queue_sort != sets:
            value = profile.plugins.queue_sort.model_dump(mode="json", by_alias=True)
            detail = "must be the same for all profiles"
            yield errors.invalid(f"{path}.plugins.queueSort", value, detail)
        if profile.args(name) != first.args(name):
            detail = "queueSort must be the same for all profiles"
            yield errors.invalid(f"{path}.pluginConfig.args", profile.args(name), detail)


def _extenders(extenders: tuple[Extender, ...]) -> Iterator[str]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path = join("extenders", i)
        if not extender.url_prefix:
            yield errors.required(f"{path}.urlPrefix")
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            yield errors.invalid(f"{path}.weight", extender.weight, detail)
        for j, resource in enumerate(extender.managed_resources):
            where = join(path, "managedResources", j, "name")
            yield from _extended_resource(where, resource.name)
            if resource.name in managed:
                detail = "duplicate extender managed resource name"
                yield errors.invalid(where, resource.name, detail)
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield errors.invalid("extenders", found, "only one extender can implement bind")


def _extended_resource(path: str, name: str) -> Iterator[str]:
    """Check the name of an extended resource: qualified, and in a domain other than Kubernetes'."""
    prefix, slash, rest = name.rpartition("/")
    if not _NAME.match(rest):
        detail = (
            "name part must be 1 to 63 characters: alphanumeric, '-', '_' or '.', and must start"
            " and end with an alphanumeric character"
        )
        yield errors.invalid(path, name, detail)
    elif slash and not _PREFIX.match(prefix):
        detail = "prefix part must be a DNS subdomain of at most 253 characters in lower case"
        yield errors.invalid(path, name, detail)
    elif (
        not slash
        or "kubernetes.io/" in name
        or name.startswith("requests.")
        # Quotas count an extended resource as "requests.<name>", which must be a name as well.
        or not _PREFIX.match(f"requests.{prefix}")
    ):
        yield errors.invalid(path, name, "is an invalid extended resource name")
