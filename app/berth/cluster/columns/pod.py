"""NAME READY STATUS RESTARTS AGE, and with ``-o wide`` where the pod is.

STATUS is a summary: the phase, unless something more telling is going on in the containers. The
rules are those of the API server's own printer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from berth.cluster.columns.cells import NONE, Cells, Since, dig, listed
from berth.cluster.resources import Object


@dataclass(frozen=True, slots=True)
class Summary:
    """What the three columns READY, STATUS and RESTARTS say of a pod."""

    reason: str
    ready: int
    total: int
    restarts: int
    last_restart: str = ""
    """When the last container of those counted ended before it was restarted; RFC 3339."""


def is_sidecar(container: Object) -> bool:
    """Tell whether an init container keeps running beside the main ones."""
    return container.get("restartPolicy") == "Always"


def condition(pod: Object, kind: str) -> Object:
    """Return the pod's condition of that type; empty when it has none."""
    for each in listed(pod, "status.conditions"):
        if each.get("type") == kind:
            found: Object = each
            return found
    return {}


def last_end(statuses: Iterable[Object]) -> str:
    """Return when the last of these containers ended that runs again since; "" when none did."""
    last = ""
    for status in statuses:
        if status.get("lastState"):
            last = max(last, dig(status, "lastState.terminated.finishedAt") or "")
    return last


def ending(terminated: Object) -> str:
    """Return how a container ended that gave no reason."""
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def pod_reason(pod: Object) -> str:
    """Return what the pod as a whole says, before its containers are looked at."""
    if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        return "SchedulingGated"
    return dig(pod, "status.reason") or dig(pod, "status.phase") or ""


def init_reason(status: Object, *, sidecar: bool) -> str | None:
    """Return why an init container holds up the pod; "" if it just runs, None if it does not."""
    terminated, waiting = dig(status, "state.terminated"), dig(status, "state.waiting") or {}
    if terminated is not None and not terminated.get("exitCode"):
        return None
    if sidecar and status.get("started"):
        return None
    if terminated is not None:
        return terminated.get("reason") or ending(terminated)
    reason = waiting.get("reason") or ""
    return "" if reason == "PodInitializing" else reason


def main_reason(status: Object) -> str | None:
    """Return why a main container does not run; None if it does."""
    state = status.get("state")
    if not isinstance(state, dict):
        return None
    terminated, waiting = state.get("terminated"), state.get("waiting")
    if isinstance(waiting, dict) and waiting.get("reason"):
        return str(waiting["reason"])
    return None if terminated is None else terminated.get("reason") or ending(terminated)


def is_ready_and_runs(status: Object) -> bool:
    """Tell whether a main container runs, if nothing is wrong with it, and is ready."""
    return bool(status.get("ready")) and dig(status, "state.running") is not None


def summarise(pod: Object) -> Summary:
    """Say what READY, STATUS and RESTARTS say.

    Init containers run one after the other, so the first that is not done is why the pod waits,
    and only they have restarts to tell of. Afterwards the main containers count, and the sidecars
    among the init containers with them.
    """
    init_containers = listed(pod, "spec.initContainers")
    sidecars = {container["name"] for container in init_containers if is_sidecar(container)}
    reason, ready, counted = pod_reason(pod), 0, list[Object]()
    initialized = True
    for index, status in enumerate(listed(pod, "status.initContainerStatuses")):
        sidecar = status.get("name") in sidecars
        counted.append(status)
        holds_up = init_reason(status, sidecar=sidecar)
        if holds_up is not None:
            reason = f"Init:{holds_up or f'{index}/{len(init_containers)}'}"
            initialized = condition(pod, "Initialized").get("status") == "True"
            break
        ready += sidecar and bool(status.get("ready"))
    if initialized:
        statuses = listed(pod, "status.containerStatuses")
        counted = [each for each in counted if each.get("name") in sidecars] + statuses
        reasons = [main_reason(each) for each in statuses]
        running = sum(
            is_ready_and_runs(each)
            for each, why in zip(statuses, reasons, strict=True)
            if why is None
        )
        reason = next(filter(None, reasons), reason)
        if reason == "Completed" and running:
            is_ready = condition(pod, "Ready").get("status") == "True"
            reason = "Running" if is_ready else "NotReady"
        ready += running
    return Summary(
        reason=final_reason(pod, reason),
        ready=ready,
        total=len(listed(pod, "spec.containers")) + len(sidecars),
        restarts=sum([each.get("restartCount", 0) for each in counted]),
        last_restart=last_end(counted),
    )


def final_reason(pod: Object, reason: str) -> str:
    """Return what a deleted pod says instead."""
    if not pod["metadata"].get("deletionTimestamp"):
        return reason
    if dig(pod, "status.reason") == "NodeLost":
        return "Unknown"
    terminal = dig(pod, "status.phase") in ("Succeeded", "Failed")
    return reason if terminal else "Terminating"


class _Summaries:
    """Remembers the latest summary, for three columns ask for it one after the other."""

    def __init__(self) -> None:
        self._latest: tuple[Object, Summary] | None = None

    def of(self, pod: Object) -> Summary:
        """Return the summary of a pod that does not change before another is asked about."""
        if self._latest is None or self._latest[0] is not pod:
            self._latest = pod, summarise(pod)
        return self._latest[1]


_summaries = _Summaries()


def ready_text(summary: Summary) -> str:
    """Return ``1/2``."""
    return f"{summary.ready}/{summary.total}"


def restarts(summary: Summary) -> str | Since:
    """Return ``0`` or ``3 (5m ago)``."""
    if summary.restarts and summary.last_restart:
        return Since(summary.last_restart, f"{summary.restarts} ({{}} ago)")
    return str(summary.restarts)


def pod_ip(pod: Object) -> str:
    """Return the first address of the pod."""
    addresses = [each.get("ip") for each in listed(pod, "status.podIPs")]
    return next(iter(addresses), dig(pod, "status.podIP")) or NONE


def readiness_gates(pod: Object) -> str:
    """Return how many of the gates are open, as ``1/2``."""
    gates = listed(pod, "spec.readinessGates")
    passed = [condition(pod, gate["conditionType"]).get("status") == "True" for gate in gates]
    return f"{sum(passed)}/{len(gates)}" if gates else NONE


CELLS: Cells = {
    "Ready": lambda pod: ready_text(_summaries.of(pod)),
    "Status": lambda pod: _summaries.of(pod).reason,
    "Restarts": lambda pod: restarts(_summaries.of(pod)),
    "IP": pod_ip,
    "Node": lambda pod: dig(pod, "spec.nodeName") or NONE,
    "Nominated Node": lambda pod: dig(pod, "status.nominatedNodeName") or NONE,
    "Readiness Gates": readiness_gates,
}
