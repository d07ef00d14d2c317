"""The configuration of a running scheduler, and its change between two attempts."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from berth.kube.field_errors import join
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.cache.cache import Cache
from berth.scheduler.config import errors
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.feature_gates import SCHEDULER_POP_FROM_BACKOFF_Q, features_of
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.framework.deferred_resize import waits_to_be_resized
from berth.scheduler.framework.exports import deciding_annotations
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import forgetting_plugins
from berth.scheduler.metrics.plugin_observer import PluginObserver
from berth.scheduler.profile.build import Registry, build_profiles, listers_of
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.backoff import Backoff
from berth.scheduler.queue.hints import Registration
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.signatures import signature_profiles

log = logging.getLogger(__name__)

FIXED: Final = (
    "leader_election",
    "client_connection",
    "enable_profiling",
    "enable_contention_profiling",
    "delay_cache_until_active",
    "feature_gates",
    "emulated_version",
    "min_compatibility_version",
    "extenders",
)
"""Fields that are read when the process starts: a reload that changes one is refused as a whole,
so that what is in force is always one file. Extenders are among them because what is kept of pods
and nodes when they are read depends on what extenders are to be shown."""


class Profiles(NamedTuple):
    """Profiles and who looks on at each, by scheduler name."""

    profiles: dict[str, Profile]
    observers: dict[str, PluginObserver]


def backoff_of(config: KubeSchedulerConfiguration) -> Backoff:
    """Return how long pods rest by *config*."""
    return Backoff(
        initial=float(config.pod_initial_backoff_seconds),
        maximum=float(config.pod_max_backoff_seconds),
        pops_early=SCHEDULER_POP_FROM_BACKOFF_Q in features_of(config),
    )


class LiveConfiguration:
    """The configuration in force with its profiles; changed by :meth:`replace` only.

    ``profiles`` is one dict for good, to be held by whoever needs to know the profiles.
    """

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        *,
        registry: Registry,
        handle: Handle,
        observe: Callable[[str], PluginObserver] | None,
        clock: Clock,
        adapt: Callable[[Profile], None] = lambda _profile: None,
    ) -> None:
        """*observe* gives who looks on at the profile of a name, if anybody does.

        Raises ConfigError.

        *adapt* may change each profile that is made.
        """
        self._registry = registry
        self.annotations = deciding_annotations(registry.values())
        """What recordings and snapshots keep of annotations: all that known plugins read."""
        self._handle = handle
        self._observe = observe
        self._clock = clock
        self._adapt = adapt
        self.current = config
        self.generation = 1
        """How many configurations have been in force."""
        self.loaded_at = clock.now()
        """When the one in force came to be so, in seconds since 1970."""
        self.reloads: Counter[str] = Counter(success=0, failure=0)
        self.profiles, self.observers = self._build(config, registry)

    def replace(
        self,
        config: KubeSchedulerConfiguration,
        *,
        registry: Registry | None = None,
        queue: SchedulingQueue,
        cache: Cache,
        pods: Mapping[str, Pod],
        extender_hints: Sequence[Registration] = (),
    ) -> None:
        """Schedule by *config* from the next attempt on.

        Everything waits by the new profiles: PreEnqueue is asked again, and pods that were
        unschedulable are tried again. Pods (all there are, by namespace/name) of a profile that is
        new are queued, those of one that is gone no more. A pod that has a node by now is bound by
        the profile that chose it; what that assumed of volumes the new one does not know, so the
        API server has to refuse the later of two writers. Awaits nothing; the queue goes through
        what waits in turns. *registry* has the plugins from now on, if they are others.
        *extender_hints* are registered for each profile.

        Raises ConfigError, and then nothing has changed.
        """
        problems = list(fixed_fields_changed(self.current, config))
        if problems:
            raise ConfigError("reload", problems)
        registry = registry or self._registry
        self._check_kinds(config, registry)
        profiles, observers = self._build(config, registry)
        self._check_queue_sort(config, profiles)
        came = profiles.keys() - self.profiles.keys()
        for name in profiles.keys() - came:
            _count_on(self.profiles[name], profiles[name])
        self.profiles.clear()
        self.profiles.update(profiles)
        self.observers = observers
        self._registry = registry
        self.annotations = deciding_annotations(registry.values())
        self.current = config
        self.generation += 1
        self.loaded_at = self._clock.now()
        queue.reconfigure(
            pre_enqueue={name: profile.pre_enqueue for name, profile in profiles.items()},
            hints={
                name: [*profile.queueing_hints(), *extender_hints]
                for name, profile in profiles.items()
            },
            backoff=backoff_of(config),
            observers=observers,
            signature_profiles=signature_profiles(profiles),
            # As long as a pod lives, it would keep the plugins that are replaced.
            afterwards=forgetting_plugins(),
        )
        for pod in pods.values() if came else ():
            uid = pod.metadata.uid
            if (
                pod.spec.scheduler_name in came
                and (not pod.spec.node_name or self.is_queued_for_resize(pod))
                and not cache.is_assumed(uid)
                and not queue.is_in_flight(uid)
            ):
                queue.add(pod)
        log.info(
            "configuration replaced",
            extra={"generation": self.generation, "profiles": ",".join(profiles)},
        )

    def is_queued_for_resize(self, pod: Pod) -> bool:
        """Whether *pod* runs, and is queued until its node has room for it to be resized."""
        if not waits_to_be_resized(pod):
            return False
        profile = self.profiles.get(pod.spec.scheduler_name)
        return profile is not None and profile.for_deferred_resizes is not None

    def _build(self, config: KubeSchedulerConfiguration, registry: Registry) -> Profiles:
        names = [profile.scheduler_name for profile in config.profiles]
        observers = {name: self._observe(name) for name in names} if self._observe else {}
        profiles = build_profiles(config, registry, self._handle, observers=observers)
        for profile in profiles.values():
            if profile.for_deferred_resizes is not None:
                self._adapt(profile.for_deferred_resizes)
            self._adapt(profile)
        return Profiles(profiles, observers)

    def _check_kinds(self, config: KubeSchedulerConfiguration, registry: Registry) -> None:
        """What plugins read is watched from the start of the process on."""
        watched = self._handle.listers.by_kind()
        problems = [
            f"a plugin reads {kind.name} at {kind.path}: it takes a restart to watch that"
            for kind in listers_of(config, registry)().by_kind()
            if not any(kind.is_like(other) for other in watched)
        ]
        if problems:
            raise ConfigError("reload", problems)

    def _check_queue_sort(
        self, config: KubeSchedulerConfiguration, profiles: Mapping[str, Profile]
    ) -> None:
        """All profiles have the same one (spec §7.1), and what waits is ordered by it already."""
        old, new = _queue_sort(self.current, self.profiles), _queue_sort(config, profiles)
        if old != new:
            why = f"the queue is ordered by {old[0]}; it takes a restart to change it to {new[0]}"
            raise ConfigError("reload", [errors.forbidden("profiles[0].plugins.queueSort", why)])


def _count_on(old: Profile, new: Profile) -> None:
    """Begin where the replaced profile of that name ended: counters must not go back."""
    for point, counts in new.evaluations.items():
        for plugin in counts:
            counts[plugin] += old.evaluations[point].get(plugin, 0)


def fixed_fields_changed(
    old: KubeSchedulerConfiguration, new: KubeSchedulerConfiguration
) -> Iterable[str]:
    """Name the fields that only a restart can change, and that differ."""
    before, now = (config.model_dump(mode="json", by_alias=True) for config in (old, new))
    for field in FIXED:
        info = type(old).model_fields[field]
        name = info.serialization_alias or info.alias or field
        yield from _differences(name, before.get(name, False), now.get(name, False))


def _differences(path: str, old: object, new: object) -> Iterable[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            yield from _differences(join(path, key), old[key], new.get(key))
    elif old != new:
        # Lists are of extenders, which may hold keys.
        has_list = isinstance(old, list) or isinstance(new, list)
        which = "" if has_list else f" from {errors.shown(old)} to {errors.shown(new)}"
        yield errors.forbidden(path, f"it takes a restart to change it{which}")


def _queue_sort(
    config: KubeSchedulerConfiguration, profiles: Mapping[str, Profile]
) -> tuple[str, object]:
    profile = config.profiles[0]
    name = profiles[profile.scheduler_name].queue_sort.NAME
    return name, profile.args(name)
