"""The scheduler itself: its parts, put together; and the two ways to drive them.

::

                          handlers  <-- what watches tell
                            |          |
                          queue      cache
                            |          |
    run() or step()  -->  schedule_one  -->  binding_cycle  -->  outside.api
                            |
                            +--> failure --> queue, failure reports
                            +--> preemptions --> outside.api

A service calls :meth:`SchedulerCore.run` and has the parts work side by side. A test, a simulation
or an offline command calls :meth:`SchedulerCore.step` until nothing is left to do: the same parts,
one thing at a time, so that what comes of it is always the same.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.pod_group import (
    POD_GROUP_INITIALLY_SCHEDULED,
    POD_GROUP_SCHEDULED,
    GroupKey,
)
from berth.runtime.clock import Clock
from berth.runtime.tasks import forever
from berth.scheduler.binding import Binding, Bindings
from berth.scheduler.binding_cycle import BindingCycle
from berth.scheduler.cache.cache import Cache
from berth.scheduler.config.feature_gates import (
    COMPOSITE_POD_GROUP,
    GENERIC_WORKLOAD,
    IN_PLACE_RESIZE_PREEMPTION,
    NOMINATED_NODE_NAME_FOR_EXPECTATION,
    OPPORTUNISTIC_BATCHING,
    POD_GROUP_LOOK_BACK,
    POD_GROUP_PREEMPTION_POLICY,
    SCHEDULER_ASYNC_PREEMPTION,
    TOPOLOGY_AWARE,
    WORKLOAD_AWARE_PREEMPTION,
    features_of,
)
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.live_configuration import LiveConfiguration, backoff_of
from berth.scheduler.core.outside import Outside
from berth.scheduler.decisions import Decisions
from berth.scheduler.event_handlers import (
    EventTimer,
    NodeHandler,
    PodHandler,
    all_event_handlers,
)
from berth.scheduler.failure import FailureHandler
from berth.scheduler.failure_reporter import FailureReporter
from berth.scheduler.foreign_binds import ForeignBinds
from berth.scheduler.framework.group_hierarchy import GroupHierarchy
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_groups import GROUPS_AS_ENTITIES, NO_GROUPS, PodGroups
from berth.scheduler.journal import Journal
from berth.scheduler.pod_group.reports import GroupParts, PodGroupReports
from berth.scheduler.preemption import Preemptions
from berth.scheduler.profile.build import Registry
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.entities import EntityQueue
from berth.scheduler.queue.flushers import run_flushers
from berth.scheduler.queue.heap import SortKey
from berth.scheduler.queue.scheduling_queue import QueueBehaviour, SchedulingQueue
from berth.scheduler.sampling import Sampling
from berth.scheduler.schedule_one import Scheduler
from berth.scheduler.schedule_pod import Select
from berth.scheduler.signatures import signature_profiles
from berth.scheduler.with_extenders import ExtenderRound

DECISIONS_KEPT: Final = 1_000


Handlers = dict[Kind[Any], ResourceEventHandler[Any]]


class CoreJournal(Journal):
    """A :class:`~berth.scheduler.journal.Journal` that may also stand between a core and the world.

    This one does not.
    """

    def steady(self, clock: Clock) -> Clock:
        """Return what decisions go by in place of *clock*.

        It should stand still during a step, so that each step has one time.
        """
        return clock

    def outside(self, outside: Outside) -> Outside:
        """Return what the core is to use in place of *outside*."""
        return outside

    def handlers(self, handlers: Handlers) -> Handlers:
        """Return what watches are to call in place of *handlers*."""
        return handlers

    def begins(self, core: "SchedulerCore") -> None:
        """*core* is made, and has heard of nothing yet."""

    def reconfigured(self, config: KubeSchedulerConfiguration) -> None:
        """The core is about to schedule by *config*."""


class CoreOptions(msgspec.Struct, frozen=True):
    """How a core differs from the default one."""

    schedules: bool = True
    """If not, no pod is its own: nothing is ever queued."""
    max_in_unschedulable: float = 300.0
    """Seconds after which an unschedulable pod is tried again in any case."""
    uses_signatures: bool = True
    """Whether one failed attempt stands for all pods of the same signature."""
    shares_answers: bool = True
    """Whether what plugins say about a pod stands for others of its template while it is true."""
    is_watched: bool = True
    """Whether plugins are timed, and decisions are recorded with the best nodes."""
    select: Callable[[NodeTable], Select] | None = None
    """Makes what picks one of several best nodes; by default one is drawn."""
    adapt_profile: Callable[[Profile], None] = lambda _profile: None
    """Changes each profile once it is made."""
    sort_key: SortKey | None = None
    """Orders the queue in place of the QueueSort plugin."""
    always_preempts_async: bool = False
    """Whether victims are evicted beside the attempt even without SchedulerAsyncPreemption.

    A simulation looks at :class:`~berth.scheduler.preemption.Preemptions` to tell of them.
    """
    journal: CoreJournal = CoreJournal()
    """Is told of all that happens."""
    scheduler: Callable[..., Scheduler] = Scheduler
    binding_cycle: Callable[..., BindingCycle] = BindingCycle
    preemptions: type[Preemptions] = Preemptions
    """What makes attempts, bindings and evictions; a replay has its own."""
    pod_handler: Callable[..., PodHandler] = PodHandler
    node_handler: Callable[..., NodeHandler] = NodeHandler
    """What takes in changes of pods and nodes, made in this order."""


DEFAULT_OPTIONS: Final = CoreOptions()


class SchedulerCore:
    """Everything between what watches tell and what is written to the API."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        outside: Outside,
        options: CoreOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Make the parts; ConfigError when the profiles of *config* cannot be made.

        *registry* has the plugins that *config* may enable.
        """
        self._journal = journal = options.journal
        self.outside = outside = journal.outside(outside)
        self.schedules = options.schedules
        api, clock, metrics, pods = outside.api, outside.clock, outside.metrics, outside.pods
        steady = journal.steady(clock)
        features = features_of(config)
        groups, are_entities = None, GROUPS_AS_ENTITIES in features
        hierarchy = GroupHierarchy(
            outside.listers.pod_groups,
            outside.listers.composite_pod_groups if COMPOSITE_POD_GROUP in features else None,
        )
        if GENERIC_WORKLOAD in features:
            groups = GroupParts(
                PodGroups(hierarchy),
                outside.listers.pod_groups,
                PodGroupReports(
                    outside.listers.pod_groups,
                    reporter=api,
                    metrics=metrics.pod_groups,
                    clock=clock,
                    condition_type=(
                        POD_GROUP_INITIALLY_SCHEDULED if are_entities else POD_GROUP_SCHEDULED
                    ),
                ),
                outside.listers.pod_disruption_budgets,
                placement_metrics=metrics.placements,
                preemption_metrics=metrics.group_preemption,
                is_topology_aware=TOPOLOGY_AWARE in features,
                preempts_as_one=WORKLOAD_AWARE_PREEMPTION in features and not are_entities,
                are_entities=are_entities,
                have_preemption_policy=POD_GROUP_PREEMPTION_POLICY in features,
                look_back=POD_GROUP_LOOK_BACK in features,
                sleep=steady.sleep,
            )
        pod_groups = groups.pod_groups if groups is not None else None
        self.cache = Cache(pod_groups)
        bindings = Bindings()
        self.preemptions = options.preemptions(
            pods=pods,
            bindings=bindings,
            reporter=api,
            evictor=api,
            metrics=metrics,
            clock=steady,
            journal=journal,
            evicted_with=hierarchy.evicted_with if are_entities else _no_group,
        )
        self.handle = Handle(
            self.cache.table,
            listers=outside.listers,
            clock=steady,
            rng=outside.rng.plugins,
            pod=pods.get,
            is_preempting=self.preemptions.is_preempting,
            nominated_node=self._nominated_node,
            gate_may_open=self._gate_may_open,
            pod_groups=pod_groups if pod_groups is not None else NO_GROUPS,
            allow_waiting=bindings.allow_waiting,
            outcomes=metrics,
            writes=api,
        )
        self.live = LiveConfiguration(
            config,
            registry=registry,
            handle=self.handle,
            observe=(
                (lambda name: metrics.of_profile(name, clock=clock, rng=outside.rng.sampling))
                if options.is_watched
                else None
            ),
            clock=clock,
            adapt=options.adapt_profile,
        )
        profiles = self.live.profiles
        self.queue = _new_queue(
            hierarchy if groups is not None and are_entities else None,
            clock=steady,
            sort_key=options.sort_key or next(iter(profiles.values())).queue_sort.sort_key,
            pre_enqueue={name: profile.pre_enqueue for name, profile in profiles.items()},
            hints={
                name: [*profile.queueing_hints(), *outside.extenders.queueing_hints()]
                for name, profile in profiles.items()
            },
            backoff=backoff_of(config),
            max_in_unschedulable=options.max_in_unschedulable,
            pod_lookup=pods.get,
            observe_hint=metrics.ran_hint,
            observe_index=metrics.looked_up_event,
            observers=self.live.observers,
            signature_profiles=signature_profiles(profiles) if options.uses_signatures else {},
            schedules_groups=groups is not None and not are_entities,
            behaviour=QueueBehaviour.of(features),
        )
        self.foreign_binds = ForeignBinds(clock=clock, count=metrics.foreign_bind)
        handlers = all_event_handlers(
            outside.listers,
            queue=self.queue,
            cache=self.cache,
            bindings=bindings,
            preemptions=self.preemptions,
            scheduler_names=profiles if options.schedules else (),
            timer=EventTimer(clock.monotonic, metrics.handled_event),
            foreign_binds=self.foreign_binds,
            features=features,
            pod_groups=pod_groups,
            is_queued_for_resize=(
                self.live.is_queued_for_resize
                if options.schedules and IN_PLACE_RESIZE_PREEMPTION in features
                else None
            ),
            pod_handler=options.pod_handler,
            node_handler=options.node_handler,
        )
        self.handlers = journal.handlers(handlers)
        """The handlers of changes, by kind."""
        self.failure_reporter = FailureReporter(
            queue=self.queue, pods=pods, reporter=api, clock=clock
        )
        failures = FailureHandler(
            queue=self.queue,
            pods=pods,
            failure_reporter=self.failure_reporter,
            metrics=metrics,
            clock=clock,
        )
        select = options.select(self.cache.table) if options.select else outside.rng.ties.choice
        self.sampling = sampling = Sampling(extenders_decide=outside.extenders.decide)
        self.scheduler = options.scheduler(
            profiles=profiles,
            queue=self.queue,
            cache=self.cache,
            select=select,
            sampling=sampling,
            extender_round=ExtenderRound(
                outside.extenders,
                select=select,
                sampling=sampling,
                cache=self.cache,
                nominator=self.queue.nominator,
                pods=pods,
                rng=outside.rng.extenders,
            ),
            decisions=Decisions(
                capacity=DECISIONS_KEPT,
                monotonic=clock.monotonic,
                ranks_nodes=options.is_watched,
            ),
            bindings=bindings,
            preemptions=self.preemptions,
            binding_cycle=options.binding_cycle(
                extenders=outside.extenders,
                queue=self.queue,
                bindings=bindings,
                reporter=api,
                failures=failures,
                metrics=metrics,
                clock=steady,
                nominates=NOMINATED_NODE_NAME_FOR_EXPECTATION in features,
                journal=journal,
            ),
            failures=failures,
            failure_reporter=self.failure_reporter,
            metrics=metrics,
            clock=clock,
            groups=groups,
            shares_answers=options.shares_answers,
            batches=OPPORTUNISTIC_BATCHING in features,
            preempts_async=(
                options.always_preempts_async or SCHEDULER_ASYNC_PREEMPTION in features
            ),
            journal=journal,
        )
        journal.begins(self)

    def _nominated_node(self, uid: str) -> str:
        return self.queue.nominator.nominated_node(uid) or ""

    def _gate_may_open(self, key: str) -> None:
        self.queue.gate_may_open(key)

    def reconfigure(self, config: KubeSchedulerConfiguration, registry: Registry) -> None:
        """Schedule by *config* from the next attempt on; see :meth:`LiveConfiguration.replace`."""
        self._journal.reconfigured(config)
        self.live.replace(
            config,
            registry=registry,
            queue=self.queue,
            cache=self.cache,
            pods=self.outside.pods if self.schedules else {},
            extender_hints=self.outside.extenders.queueing_hints(),
        )

    async def run(self) -> None:
        """Take pods from the queue and do what is decided, for ever; the parts side by side."""
        self.foreign_binds.begin()
        aligned = backoff_of(self.live.current).pops_early
        flushers = partial(run_flushers, self, self.outside.clock, aligned=aligned)
        async with asyncio.TaskGroup() as tasks:
            for name, run in (
                ("queue flushers", flushers),
                ("preemptions", partial(self.preemptions.run, self.queue)),
                ("background work", self.outside.api.background.run),
                ("failure reports", self.failure_reporter.run),
                ("scheduling", self.scheduler.run),
            ):
                tasks.create_task(forever(name, run), name=name)

    def flush_backoff_completed(self) -> None:
        """Have the queue move the pods whose backoff is over."""
        self._journal.flushes(leftovers=False)
        self.queue.flush_backoff_completed()

    def flush_unschedulable_pods_leftover(self) -> None:
        """Have the queue try again the pods that waited too long."""
        self._journal.flushes(leftovers=True)
        self.queue.flush_unschedulable_pods_leftover()

    async def schedule_next(self) -> Sequence[Binding] | None:
        """Make the next attempt; return what is to be bound, or None if no pod is ready."""
        queued = self.scheduler.next_pod()
        if queued is None:
            return None
        if self.scheduler.apply_cached_failure(queued):
            return ()
        return await self.scheduler.schedule_one(queued)

    async def step(self) -> bool:
        """Do the next thing to its end; False if there is nothing to do now.

        Victims are evicted, a pod is tried and bound, work that a plugin started is done, or a
        failure is reported. Whatever waits for the clock waits.
        """
        if pending := self.preemptions.take():
            await self.preemptions.prepare_candidate(pending, self.queue)
        elif (bindings := await self.schedule_next()) is not None:
            for binding in bindings:
                await self.scheduler.binding_cycle.run(binding)
        elif job := self.outside.api.background.take():
            await self.outside.api.background.do(job)
        else:
            return self.failure_reporter.report_next()
        return True

    @property
    def is_idle(self) -> bool:
        """Nothing to try, to bind, to evict or to report. Pods may wait, unschedulable."""
        counts = self.queue.sub_queues.pending_counts()
        return (
            self.queue.is_settled
            and not counts["active"]
            and not counts["backoff"]
            and not self.queue.in_flight_counts()
            and not self.scheduler.binding_count
            and self.preemptions.is_idle
            and not len(self.queue.nominator)  # who is nominated waits for room being made
            and self.outside.api.background.is_idle
            and not len(self.failure_reporter)
        )

    def check_invariants(self) -> None:
        """Raise AssertionError if cache or queue disagree with themselves; for tests."""
        self.cache.check_invariants()
        self.queue.check_invariants()


def _no_group(_key: GroupKey) -> None:
    return None


def _new_queue(hierarchy: GroupHierarchy | None, **options: Any) -> SchedulingQueue:
    """Make a queue; given *hierarchy*, with its roots as entities."""
    if hierarchy is None:
        return SchedulingQueue(**options)
    return EntityQueue(hierarchy=hierarchy, **options)
