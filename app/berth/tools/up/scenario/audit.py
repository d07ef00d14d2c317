"""Rules that hold in every cluster, checked again and again; and what happened, counted.

- No node has more requested of it than it can take.
- No pod is lost: once bound it stays on its node until it ends, it does not outlive its node by
  more than ten minutes, and none that is being deleted stays for ever on a node that works.
- Every pending pod is explained: by the condition ``PodScheduled``, and by the scheduler.
- No eviction through the API leaves a budget with fewer healthy pods than it wants.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

import msgspec

from berth.cluster.resources import Object
from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import NANO, parse
from berth.kube.objects.resources import pod_requests
from berth.kube.objects.selectors import Selector, compile_selector
from berth.runtime.clock import Clock
from berth.tools.up.scenario.conditions import (
    condition,
    is_finished,
    is_ready,
    is_terminating,
    node_of,
    phase_of,
)

KINDS: Final = ("PodDisruptionBudget", "Job")
"""What must be seen for it besides pods and nodes."""

UNEXPLAINED_SECONDS: Final = 10.0
"""A pod is pending for so long before it must be explained."""
ORPHAN_SECONDS: Final = 600.0
"""A pod may outlive its node by so much."""
STUCK_SECONDS: Final = 600.0
"""A deletion may take so much longer than its grace period, on a node that works."""
MOST_SHOWN: Final = 20
"""Violations that are told."""


class Seen(Protocol):
    """What it looks at: :class:`~berth.tools.up.scenario.observed.Observed`."""

    def of(self, kind: str) -> Mapping[str, Object]: ...

    def follow(self, kind: str, follower: ResourceEventHandler[Object]) -> None: ...


class Auditor:
    """Looks at *observed*.

    *explain* asks the scheduler, and raises LookupError if it cannot say. *is_scheduling* says
    whether there is one: while there is none, nobody explains anything.
    """

    def __init__(
        self,
        observed: Seen,
        *,
        explain: Callable[[str], str],
        is_scheduling: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self.violations: list[str] = []
        self.looks = 0
        self.counts: Counter[str] = Counter()
        self._observed = observed
        self._explain = explain
        self._is_scheduling = is_scheduling
        self._clock = clock
        self._requests: dict[str, Mapping[str, int]] = {}
        self._since: dict[tuple[str, str], float] = {}
        """Since when something is so of a pod, by uid."""
        self._asked: set[str] = set()
        self._told: set[str] = set()
        self._checked: set[tuple[str, str]] = set()
        self._selectors: dict[str, Selector] = {}
        observed.follow("Pod", self)

    # What happens to pods; called at every change.

    def on_add(self, pod: Object, /) -> None:
        self.counts["pods"] += 1
        self._count("pods at a time", len(self._observed.of("Pod")))

    def on_update(self, old: Object, new: Object, /) -> None:
        before, node = node_of(old), node_of(new)
        if before != node:
            self.counts["bound"] += 1
            if before:
                self._violated(f"pod {_key(new)} has moved from node {before} to {node}")
        if is_finished(new) and not is_finished(old):
            self.counts[phase_of(new).lower()] += 1
            if reason := new["status"].get("reason"):
                self.counts[f"failed: {reason}"] += 1
        why = condition(new, "DisruptionTarget", "reason")
        if why and not condition(old, "DisruptionTarget", "reason"):
            self.counts[f"disrupted: {why}"] += 1
            if why == "EvictionByEvictionAPI" and is_ready(old):
                self._check_budgets(new)

    def on_delete(self, pod: Object, /) -> None:
        self.counts["deleted"] += 1
        uid = pod["metadata"]["uid"]
        self._requests.pop(uid, None)

    def _check_budgets(self, pod: Object) -> None:
        namespace = pod["metadata"]["namespace"]
        for budget in self._observed.of("PodDisruptionBudget").values():
            if budget["metadata"]["namespace"] != namespace or not self._covers(budget, pod):
                continue
            wanted = int((budget.get("status") or {}).get("desiredHealthy") or 0)
            healthy = sum(
                is_ready(other)
                and not is_terminating(other)
                and other["metadata"]["namespace"] == namespace
                and other["metadata"]["uid"] != pod["metadata"]["uid"]
                and self._covers(budget, other)
                for other in self._observed.of("Pod").values()
            )
            if healthy < wanted:
                name = budget["metadata"]["name"]
                self._violated(
                    f"eviction of pod {_key(pod)} left budget {name} with {healthy} healthy pods"
                    f" of {wanted}"
                )

    def _covers(self, budget: Object, pod: Object) -> bool:
        uid = f"{budget['metadata']['uid']}/{budget['metadata'].get('generation')}"
        selector = self._selectors.get(uid)
        if selector is None:
            given = msgspec.convert(budget["spec"].get("selector"), LabelSelector | None)
            selector = self._selectors[uid] = compile_selector(given)
        return selector.matches(pod["metadata"].get("labels") or {})

    # What is so now.

    def look(self) -> None:
        """Check all rules now."""
        self.looks += 1
        nodes, pods = self._observed.of("Node"), self._observed.of("Pod")
        self._check_requests(nodes, pods)
        self._count("nodes at a time", len(nodes))
        self._count("pending at a time", sum(map(_is_pending, pods.values())))
        now = self._clock.monotonic()
        since = {}
        for key, pod in pods.items():
            for what, seconds, check in self._oddities(key, pod, nodes):
                mark = what, pod["metadata"]["uid"]
                since[mark] = began = self._since.get(mark, now)
                if now - began > seconds and mark not in self._checked:
                    self._checked.add(mark)
                    if why := check():
                        self._violated(f"pod {key} {what}, for {now - began:.0f}s: {why}")
        self._since = since

    def _oddities(
        self, key: str, pod: Object, nodes: Mapping[str, Object]
    ) -> Iterator[tuple[str, float, Callable[[], str]]]:
        """Yield what may be so of a pod for some seconds, and what says why not for longer."""
        node, metadata = node_of(pod), pod["metadata"]
        if node and node not in nodes:
            yield "has outlived its node", ORPHAN_SECONDS, lambda: f"{node} is gone"
        if _is_pending(pod) and self._is_scheduling():
            yield "is pending", UNEXPLAINED_SECONDS, lambda: self._not_explained(key)
        if is_terminating(pod) and not metadata.get("finalizers"):
            grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
            if not node or (node in nodes and is_ready(nodes[node])):
                yield "is terminating", grace + STUCK_SECONDS, lambda: f"{node} is ready"

    def _not_explained(self, key: str) -> str:
        """Return what is missing of the explanation of a pod; "" if it is explained."""
        pod = self._observed.of("Pod")[key]
        if not condition(pod, "PodScheduled", "message"):
            return "its status does not say why"
        owners = pod["metadata"].get("ownerReferences") or [pod["metadata"]]
        if owners[0]["uid"] in self._asked:  # about a pod that is like it
            return ""
        self._asked.add(owners[0]["uid"])
        try:
            self._explain(key)
        except LookupError as exc:
            return str(exc)
        return ""

    def _check_requests(self, nodes: Mapping[str, Object], pods: Mapping[str, Object]) -> None:
        used: dict[str, Counter[str]] = {}
        for pod in pods.values():
            node = node_of(pod)
            if node and not is_finished(pod):
                used.setdefault(node, Counter()).update(self._requested(pod))
        for name, requested in used.items():
            if name not in nodes:
                continue
            allocatable = nodes[name]["status"].get("allocatable") or {}
            for resource, amount in requested.items():
                room = parse(allocatable.get(resource, 0))
                if amount > room:
                    self._violated(
                        f"node {name} has {amount / NANO:g} {resource} requested of {room / NANO:g}"
                    )

    def _requested(self, pod: Object) -> Mapping[str, int]:
        uid = pod["metadata"]["uid"]
        known = self._requests.get(uid)
        if known is None:
            typed = msgspec.convert(pod, Pod)
            requests = pod_requests(typed, use_status=False, pod_level=True)
            known = self._requests[uid] = {**requests, "pods": NANO}
        return known

    def _violated(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self.violations.append(what)

    def _count(self, what: str, number: int) -> None:
        self.counts[what] = max(self.counts[what], number)

    def lines(self) -> Iterator[str]:
        """Yield what happened, in lines for people."""
        jobs = self._observed.of("Job").values()
        done = sum(condition(job, "Complete", "status") == "True" for job in jobs)
        if jobs:
            yield f"{done} of the {len(jobs)} Jobs that are left have completed"
        for what, number in sorted(self.counts.items()):
            yield f"{what}: {number}"
        yield f"audited {self.looks} times: {len(self.violations)} violations"
        yield from self.violations[:MOST_SHOWN]


def _key(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _is_pending(pod: Object) -> bool:
    """Whether the scheduler looks for a node for the pod."""
    return not (
        node_of(pod)
        or pod["spec"].get("schedulingGates")
        or is_terminating(pod)
        or is_finished(pod)
    )
