"""The endpoints below ``/debug``, described in ``/openapi.json``."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from berth.insight.explain.explainer import Explainer
from berth.insight.explain.groups.explainer import policy_of, status_of
from berth.insight.shadow.shadow import Shadow
from berth.kube.client.errors import ApiError
from berth.kube.informer.reflector import Reflector
from berth.kube.objects.pod_group import GroupKey
from berth.kube.objects.selector_text import parse_label_selector
from berth.kube.objects.selectors import Selector
from berth.runtime.tasks import awaited_frames
from berth.scheduler.core.view import GroupsView, SchedulerView
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.queue.sub_queues import SubQueue
from berth.scheduler.result import Result
from berth.service.server.refusal import Refusal, cut
from berth.service.server.scheduler.debug import device_models, models
from berth.service.server.scheduler.debug.cluster import ClusterAnswers
from berth.service.server.scheduler.debug.cluster_endpoints import add_cluster
from berth.service.server.scheduler.debug.comparison import ClusterComparison
from berth.service.server.scheduler.debug.devices import DeviceFilter, Devices, published_devices
from berth.service.server.scheduler.debug.models import (
    PastDecisions,
    PodGroupOverview,
    PodGroups,
    RunningTask,
    RunningTasks,
)
from berth.service.server.scheduler.debug.nodes import NodeFilter, NodeOrder, cached_nodes
from berth.service.server.scheduler.debug.pagination import (
    DEFAULT_LIMIT,
    AfterNames,
    AfterNumber,
    Limit,
    ordered,
    unordered,
)
from berth.service.server.scheduler.debug.queue import QueueFilter, QueueSort, waiting_pods
from berth.service.server.scheduler.debug.reservations import (
    in_flight_pods,
    nominated_pods,
    permitted_pods,
)
from berth.service.server.scheduler.debug.responses import (
    UNREADABLE,
    Descending,
    NameOfPod,
    OfNode,
    OfPod,
    as_json,
    page_as_json,
    told_in_turns,
)
from berth.service.server.scheduler.debug.shadow_endpoints import add_shadow
from berth.service.server.scheduler.debug.shard_endpoints import Describe, add_shards
from berth.service.server.scheduler.debug.waiting_groups import SharedGroups
from berth.service.server.scheduler.parameters import ONLY_KNOWN

LARGEST_WITH_PODS: Final = 50
"""Nodes on a page that has their pods: each has up to a few hundred."""


@dataclass(frozen=True, slots=True)
class DebugState:
    """What the endpoints look at."""

    view: SchedulerView
    explainer: Explainer
    comparison: ClusterComparison | None
    """None where there is no API server."""
    devices: Devices
    configuration: Callable[[], models.EffectiveConfiguration]
    reflectors: Mapping[str, Reflector[Any]]
    """What keeps the scheduler informed, by path."""
    is_ready: Callable[[], bool]
    """Whether the whole state of the cluster is known."""
    shadow: Shadow | None = None
    """None where no other scheduler is followed."""
    shards: Describe | None = None
    """None where this replica is the only one that schedules."""


def debug_endpoints(state: DebugState) -> APIRouter:
    """Return the endpoints, to be served on the event loop of the scheduler."""
    router = APIRouter(prefix="/debug", tags=["debug"], dependencies=[ONLY_KNOWN])
    _add_pods(router, state)
    _add_cache(router, state)
    add_cluster(router, ClusterAnswers(state.view, state.explainer))
    add_shadow(router, state.shadow)
    add_shards(router, state.shards)
    _add_process(router, state)
    return router


def _add_pods(router: APIRouter, state: DebugState) -> None:
    view = state.view

    @router.get(
        "/queue",
        summary="Pending pods",
        response_model=models.WaitingPods,
        responses=UNREADABLE,
    )
    async def queue(
        after: AfterNames,
        part: Annotated[
            models.QueueName | None,
            Query(alias="queue", description="Only this part of the queue."),
        ] = None,
        namespace: Annotated[str, Query(description="Only this namespace.")] = "",
        pod: OfPod = "",
        name: NameOfPod = "",
        plugin: Annotated[
            str, Query(description="Only pods that this plugin gates, rejected, or makes wait.")
        ] = "",
        scheduler_name: Annotated[
            str, Query(alias="schedulerName", description="Only pods of this profile.")
        ] = "",
        min_age: Annotated[
            float,
            Query(
                alias="minAge",
                ge=0,
                description="Only pods that have been pending for at least this many seconds.",
            ),
        ] = 0.0,
        group: Annotated[
            str, Query(description="Only pods of this group, by the `id` in `/debug/queue/groups`.")
        ] = "",
        sort: Annotated[
            QueueSort, Query(description="By what the pods are sorted, and then by uid.")
        ] = QueueSort.NAME,
        descending: Descending = False,
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        wanted = QueueFilter(part, namespace, pod, name, plugin, scheduler_name, min_age, group)
        waiting = await waiting_pods(
            view, wanted, after=after, limit=limit, sort=sort, descending=descending
        )
        return await page_as_json(waiting, view.clock)

    groups = {
        by_workload: SharedGroups(view, by_workload=by_workload) for by_workload in (False, True)
    }

    @router.get(
        "/queue/groups",
        summary="Pending pods by reason, what to look at first before the others",
        response_model=models.WaitingGroups,
    )
    async def queue_groups(
        by_workload: Annotated[
            bool,
            Query(alias="byWorkload", description="Put pods of different workloads apart."),
        ] = False,
    ) -> Response:
        return as_json(await groups[by_workload].get())

    @router.get(
        "/nominated",
        summary="Nominated pods",
        response_model=models.NominatedPods,
        responses=UNREADABLE,
    )
    async def nominated(
        after: AfterNames, node: OfNode = "", limit: Limit = DEFAULT_LIMIT
    ) -> Response:
        return as_json(nominated_pods(view, node=node, after=after, limit=limit))

    @router.get(
        "/waiting",
        summary="Pods that wait on Permit",
        response_model=models.PermittedPods,
        responses=UNREADABLE,
    )
    async def waiting(
        after: AfterNames,
        plugin: Annotated[str, Query(description="Only pods that wait for this plugin.")] = "",
        node: OfNode = "",
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        return as_json(permitted_pods(view, plugin=plugin, node=node, after=after, limit=limit))

    @router.get(
        "/inflight",
        summary="Pods in flight, and the events since they were popped",
        response_model=models.InFlightPods,
        responses=UNREADABLE,
    )
    async def inflight(after: AfterNames, limit: Limit = DEFAULT_LIMIT) -> Response:
        return as_json(in_flight_pods(view, after=after, limit=limit))

    @router.get(
        "/podgroups",
        summary="Pod groups, with how many of their pods have nodes",
        response_model=models.PodGroups,
        responses=UNREADABLE,
    )
    async def podgroups(
        after: AfterNames,
        namespace: Annotated[str, Query(description="Only this namespace.")] = "",
        name: Annotated[
            str, Query(description="Only groups whose namespace/name contains this.")
        ] = "",
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        return as_json(known_groups(view, namespace=namespace, name=name, after=after, limit=limit))

    @router.get(
        "/decisions",
        summary="The last attempts, newest first",
        response_model=models.PastDecisions,
        responses=UNREADABLE,
    )
    async def decisions(
        after: AfterNumber,
        pod: OfPod = "",
        name: NameOfPod = "",
        node: Annotated[str, Query(description="Only attempts that chose this node.")] = "",
        result: Annotated[
            Result | None, Query(description="Only attempts with this result.")
        ] = None,
        plugin: Annotated[
            str, Query(description="Only attempts in which this plugin rejected the pod.")
        ] = "",
        profile: Annotated[str, Query(description="Only this profile.")] = "",
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        wanted = DecisionFilter(pod, name, node, result, plugin, profile)
        page = await past_decisions(view, state.explainer, wanted, after=after, limit=limit)
        return await page_as_json(page, view.clock)


def _add_cache(router: APIRouter, state: DebugState) -> None:
    @router.get(
        "/cache",
        summary="Nodes as the scheduler counts them, from the cache",
        response_model=models.CachedNodes,
        responses=UNREADABLE,
    )
    async def cache(
        after: AfterNumber,
        node: OfNode = "",
        name: Annotated[str, Query(description="Only nodes whose name contains this.")] = "",
        zone: Annotated[str, Query(description="Only nodes in this zone.")] = "",
        selector: Annotated[
            str,
            Query(
                alias="labelSelector", description="Only nodes whose labels match, as in a=b,c!=d."
            ),
        ] = "",
        pods: Annotated[
            bool,
            Query(
                description="Include the pods, and the labels, conditions and images of the nodes;"
                f" for at most {LARGEST_WITH_PODS} nodes a page."
            ),
        ] = False,
        sort: Annotated[
            str,
            Query(
                description="`name`, `use` for the resource of which the largest share is"
                " requested, or the name of a resource. Between pages a node may move. By default"
                " in the order of the rows.",
            ),
        ] = "",
        descending: Descending = False,
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        wanted = NodeFilter(node, name, zone, _selector(selector))
        limit = min(limit, LARGEST_WITH_PODS) if pods else limit
        order = NodeOrder(sort, descending)
        page = await cached_nodes(
            state.view,
            state.reflectors,
            wanted,
            with_pods=pods,
            after=after,
            limit=limit,
            order=order,
        )
        return await page_as_json(page, state.view.clock)

    @router.get(
        "/devices",
        summary="Devices of ResourceSlices, with the claims and pods that have them",
        response_model=device_models.PublishedDevices,
        responses=UNREADABLE,
    )
    async def devices(
        after: AfterNames,
        driver: Annotated[str, Query(description="Only devices of this driver.")] = "",
        pool: Annotated[str, Query(description="Only devices of this pool.")] = "",
        node: Annotated[str, Query(description="Only devices of this node alone.")] = "",
        device: Annotated[str, Query(description="Only devices of this name.")] = "",
        name: Annotated[
            str, Query(description="Only devices whose driver/pool/device contains this.")
        ] = "",
        claim: Annotated[
            str, Query(description="Only devices that this claim has, as namespace/name.")
        ] = "",
        allocated: Annotated[
            bool | None, Query(description="Only devices that a claim has, or that none has.")
        ] = None,
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        wanted = DeviceFilter(driver, pool, node, device, name, claim, allocated)
        return as_json(await published_devices(state.devices, wanted, after=after, limit=limit))

    @router.get(
        "/compare",
        summary="Differences between the cache and the API server",
        description="Lists all nodes and pods. Differences are checked again after a second,"
        " because watches may be behind.",
        response_model=models.ComparisonReport,
        responses={503: {"model": Refusal, "description": "The API server cannot be read"}},
    )
    async def compare(limit: Limit = DEFAULT_LIMIT) -> Response:
        if state.comparison is None:
            raise HTTPException(503, "there is no API server to compare with")
        if not state.is_ready():
            raise HTTPException(503, "the state of the cluster is not known yet")
        try:
            return as_json(await state.comparison.report(limit=limit))
        except ApiError as exc:
            raise HTTPException(503, f"the API server does not answer: {exc}") from exc


def _add_process(router: APIRouter, state: DebugState) -> None:
    @router.get(
        "/tasks",
        summary="Tasks of the event loop, with the line at which each waits",
        response_model=models.RunningTasks,
        responses=UNREADABLE,
    )
    async def tasks(
        after: AfterNames,
        name: Annotated[str, Query(description="Only tasks whose name contains this.")] = "",
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        return as_json(running_tasks(name=name, after=after, limit=limit))

    @router.get(
        "/config",
        summary="The effective configuration, defaults included",
        response_model=models.EffectiveConfiguration,
    )
    async def config() -> Response:
        return as_json(state.configuration())


def _selector(text: str) -> Selector | None:
    try:
        return parse_label_selector(text) if text else None
    except ValueError as exc:
        raise HTTPException(400, cut(str(exc))) from exc


# The attempts that are still remembered.


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which attempts are asked for; what is empty does not matter."""

    pod: str = ""
    """As in namespace/name."""
    name: str = ""
    """A part of that."""
    node: str = ""
    """Where the pod was to go."""
    result: Result | None = None
    plugin: str = ""
    """One that rejected the pod."""
    profile: str = ""

    def matches(self, record: DecisionRecord) -> bool:
        return (
            self.pod in ("", record.pod)
            and self.name in record.pod
            and self.node in ("", record.node)
            and self.result in (None, record.result)
            and (not self.plugin or self.plugin in record.plugins)
            and self.profile in ("", record.profile)
        )


async def past_decisions(
    view: SchedulerView,
    explainer: Explainer,
    wanted: DecisionFilter,
    *,
    after: int | None,
    limit: int,
) -> PastDecisions:
    """Return the attempts that *wanted* describes, those before number *after*, newest first."""
    older = (
        record
        for record in view.decisions.newest_first()
        if (after is None or record.number < after) and wanted.matches(record)
    )
    some = await told_in_turns(islice(older, limit + 1), view.clock)
    records, token = ordered(some, key=lambda record: record.number, limit=limit)
    told = await told_in_turns(map(explainer.past_decision, records), view.clock)
    return PastDecisions(items=told, continue_=token)


# Pod groups.


def known_groups(
    view: SchedulerView, *, namespace: str, name: str, after: tuple[str, str] | None, limit: int
) -> PodGroups:
    """Return the groups that have an object or a pod, of *namespace* only if it is given.

    *name* is a part of namespace/name.
    """
    parts = view.groups
    if parts is None:
        return PodGroups(items=())
    keys, token = unordered(
        (key for key in _keys(parts) if namespace in ("", key.namespace) and name in str(key)),
        key=lambda key: (key.namespace, key.name),
        after=after,
        limit=limit,
    )
    return PodGroups(items=tuple(_overview(key, parts, view) for key in keys), continue_=token)


def _keys(parts: GroupsView) -> Iterator[GroupKey]:
    for key, _ in parts.pod_groups:
        yield key
    for group in parts.groups:
        key = GroupKey(group.metadata.namespace, group.metadata.name)
        if parts.pod_groups.get(key) is None:
            yield key


_GATED: Final = (SubQueue.GATED, SubQueue.INCOMPLETE)


def _overview(key: GroupKey, parts: GroupsView, view: SchedulerView) -> PodGroupOverview:
    group, state = parts.groups.get(key.namespace, key.name), parts.pod_groups.get(key)
    place_of = view.queue.sub_queues.place_of
    waiting = state.unscheduled() if state is not None else ()
    root = parts.pod_groups.hierarchy.root_key(key)
    return PodGroupOverview(
        pod_group=str(key),
        exists=group is not None,
        policy=policy_of(group),
        min_count=None if group is None else group.min_count,
        num_pods=state.all_pods_count if state is not None else 0,
        num_scheduled=state.scheduled_pods_count if state is not None else 0,
        num_gated=sum(place_of(pod.key) in _GATED for pod in waiting),
        status=status_of(group),
        part_of="" if root == key else str(root),
    )


# Tasks of the event loop, with the line at which each waits.


Task = asyncio.Task[Any]


def running_tasks(*, name: str, after: tuple[str, str] | None, limit: int) -> RunningTasks:
    """Return the tasks of this event loop whose name contains *name*."""
    tasks = (task for task in asyncio.all_tasks() if name in task.get_name())
    page, token = unordered(tasks, key=_place, after=after, limit=limit)
    return RunningTasks(items=tuple(map(_told, page)), continue_=token)


def _place(task: Task) -> tuple[str, str]:
    return task.get_name(), f"{id(task):x}"


def _told(task: Task) -> RunningTask:
    coroutine: Any = task.get_coro()
    return RunningTask(
        name=task.get_name(),
        coroutine=getattr(coroutine, "__qualname__", type(coroutine).__name__),
        where=tuple(map(_line, awaited_frames(coroutine))),
    )


def _line(frame: FrameType) -> str:
    module = frame.f_globals.get("__name__", "?")
    return f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
