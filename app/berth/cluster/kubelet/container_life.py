"""One container of a hollow pod: what it does now, what it has done, and when it goes on."""

from dataclasses import dataclass, replace
from enum import Enum, auto
from math import inf
from typing import Final

from berth.cluster.kubelet.container_plan import RUNS, ContainerPlan, Role
from berth.cluster.kubelet.processes.process import Process
from berth.cluster.kubelet.processes.sandbox import Sandbox
from berth.cluster.kubelet.restarts import FIRST_SECONDS, BackOff
from berth.cluster.pods.kubelet import (
    KubeletContainer,
    KubeletContainerStatus,
    StateTerminated,
)
from berth.cluster.times import seconds_of

SIGTERM_EXIT: Final = 143
KILLED: Final = 137
"""The exit code of a container that was killed: 128 and the number of SIGKILL."""


class Doing(Enum):
    """What a container does. Of each, ``due`` is when it goes on."""

    WAITING = auto()
    """For its turn."""
    PULLING = auto()
    PULL_BACK_OFF = auto()
    CREATING = auto()
    RUNNING = auto()
    BACK_OFF = auto()
    """Before it is restarted."""
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class Termination:
    """An end. Times are unix times."""

    exit_code: int
    reason: str
    since: float
    until: float
    message: str = ""


STATUS_UNKNOWN: Final = Termination(
    KILLED,
    "ContainerStatusUnknown",
    since=0.0,
    until=0.0,
    message="The container could not be located when the pod was terminated",
)
"""The end of a container that had not started when its pod ended (``status.TerminatePod``)."""


@dataclass(slots=True)
class ContainerLife:
    """The state of one container. Times are unix times."""

    container: KubeletContainer
    role: Role
    plan: ContainerPlan = RUNS
    doing: Doing = Doing.WAITING
    due: float = inf
    waits: tuple[str, str] = ("", "")
    """Reason and message of the state ``waiting``."""
    since: float = 0.0
    """Of its last start."""
    started: bool = False
    """Whether it has passed its startup probe since then."""
    ready: bool = False
    starts_at: float = inf
    readies_at: float = inf
    ends_at: float = inf
    quiet_until: float = 0.0
    """While it is stopped: the end of its preStop hook."""
    is_told: bool = False
    """Whether it was told to end."""
    end: Termination | None = None
    last: Termination | None = None
    """The end before the last start."""
    restarts: int = 0
    failed_pulls: int = 0
    back_off: BackOff | None = None
    is_pulled: bool = False
    """Whether its image was pulled for the start that comes."""
    pull_back_off: BackOff | None = None
    sandbox: Sandbox | None = None
    """Of its last start; None: nobody has needed it."""
    previous: Sandbox | None = None
    """Of the start before."""
    files_seen: int = 0
    """The version of its files when its probes were asked last."""

    @property
    def has_run(self) -> bool:
        """Whether it runs, or did."""
        return self.doing is Doing.RUNNING or self.end is not None or self.last is not None

    @property
    def is_passed(self) -> bool:
        """Whether those after this init container may start."""
        if self.role is Role.SIDECAR:
            return self.started or self.restarts > 0
        return self.doing is Doing.ENDED and self.end is not None and self.end.exit_code == 0

    @property
    def process(self) -> Process | None:
        """What it runs, if that is understood."""
        return None if self.sandbox is None else self.sandbox.process

    @property
    def process_due(self) -> float:
        process = self.process
        return inf if process is None else process.due

    def runs(self, now: float) -> None:
        """Start running."""
        plan, container = self.plan, self.container
        if self.end is not None:
            self.last, self.end = self.end, None
        self.doing, self.since = Doing.RUNNING, now
        until_stopped = plan.run_seconds is None or self.process is not None
        self.ends_at = inf if until_stopped else now + (plan.run_seconds or 0.0)
        self.due = min(self.ends_at, self.process_due)
        startup, readiness = container.startup_probe, container.readiness_probe
        if startup is None and readiness is None and plan.ready_seconds == 0:
            self.started = self.ready = True
            self.starts_at = self.readies_at = inf
            return
        self.started = startup is None
        self.starts_at = inf if startup is None else now + startup.initial_delay_seconds
        self.ready, self.readies_at = False, inf
        if plan.ready_seconds is not None:
            passes = now if startup is None else self.starts_at
            if readiness is not None:
                passes = max(passes, now + readiness.initial_delay_seconds)
                passes += (readiness.success_threshold - 1) * readiness.period_seconds
            self.readies_at = passes + plan.ready_seconds
        self.passes_probes(now)

    def passes_probes(self, now: float) -> None:
        """Note what it has become by *now*, and when it goes on."""
        if self.starts_at <= now:
            self.started, self.starts_at = True, inf
        if self.readies_at <= now:
            self.readies_at = inf
            self.ready = self.sandbox is None or self.sandbox.passes("readinessProbe", now)
        self.due = min(self.starts_at, self.readies_at, self.ends_at, self.process_due)

    def asks_probes(self, now: float) -> bool:
        """Ask probes again if files have changed; return whether that changes whether it is ready.

        A probe that fails is noticed at once; a container whose liveness probe fails so often that
        it counts ends then.
        """
        if self.sandbox is None or self.files_seen == self.sandbox.files.version:
            return False
        self.files_seen = self.sandbox.files.version
        was_ready, plan, liveness = self.ready, self.plan, self.container.liveness_probe
        if self.readies_at == inf and plan.ready_seconds is not None:
            self.ready = self.started and self.sandbox.passes("readinessProbe", now)
        if liveness is not None and not self.is_told:
            if self.sandbox.passes("livenessProbe", now):
                self.ends_at = inf if plan.fails_liveness else self.ends_at
            elif self.ends_at == inf:
                self.ends_at = now + liveness.failure_threshold * liveness.period_seconds
                self.plan = replace(plan, exit_code=KILLED, fails_liveness=True)
        self.due = min(self.due, self.ends_at)
        return self.ready is not was_ready

    def terminates(self, now: float, *, exit_code: int, reason: str) -> None:
        """Stop running; nothing more happens by itself."""
        told = reason or ("Error" if exit_code else "Completed")
        message = ""
        if self.sandbox is not None:
            if self.sandbox.process is not None and self.sandbox.process.exit_code is None:
                self.sandbox.process.kill(exit_code)
            self.sandbox.log.end(now)
            message = self.sandbox.termination_message(exit_code)
        self.end = Termination(exit_code, told, self.since, now, message)
        self.doing, self.due = Doing.ENDED, inf
        self.started = self.ready = False

    def gives_up(self, *, is_initialized: bool) -> None:
        """Never start again: it does not run, and the pod ends."""
        if self.end is None and self.last is not None:
            self.end, self.last = self.last, None
        elif self.end is None and is_initialized:
            self.end = STATUS_UNKNOWN
        self.doing, self.due = Doing.ENDED, inf

    def backs_off(self, now: float) -> float:
        """Return for how long it pauses before it is started again, from *now*."""
        if self.back_off is None:
            self.back_off = BackOff()
        return self.back_off.next(now)

    def backs_off_pulling(self, now: float) -> float:
        """Return for how long it pauses before its image is pulled again."""
        if self.pull_back_off is None:
            self.pull_back_off = BackOff(FIRST_SECONDS, now)
        self.failed_pulls += 1
        return self.pull_back_off.next(now)

    def resumes(self, status: KubeletContainerStatus, now: float) -> None:
        """Take over what an earlier kubelet process has reported, except how it lives on."""
        self.restarts = status.restart_count
        if status.last_state.terminated is not None:
            self.last = _termination(status.last_state.terminated, now)
        state = status.state
        if state.terminated is not None:
            self.end = _termination(state.terminated, now)
            self.doing = Doing.ENDED
        elif state.running is not None:
            since = state.running.started_at
            self.runs(now if since is None else seconds_of(since))
            self.passes_probes(now)


def _termination(state: StateTerminated, now: float) -> Termination:
    since = now if state.started_at is None else seconds_of(state.started_at)
    until = now if state.finished_at is None else seconds_of(state.finished_at)
    return Termination(state.exit_code, state.reason, since, until)
