"""The containers of one pod, from the first start to the last end. Synchronous; no I/O.

::

    begin ──▶ init containers, in order ──▶ all others, at once ──▶ over
                (sidecars stay)                │                      ▲
    stop (deleted, evicted, too late) ─────────┴─ sidecars last, ─────┘
                                                  in reverse order

What a container does next is due at some time; :meth:`PodLife.advance` does all that is due, in
order, also when nobody has looked for a while. The rules are those of ``computePodActions`` and
``killContainersWithSyncResult`` in ``pkg/kubelet/kuberuntime``.
"""

from dataclasses import replace
from math import inf
from typing import Final

from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.container_life import KILLED, SIGTERM_EXIT, ContainerLife, Doing
from berth.cluster.kubelet.container_plan import PodPlan, Role
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.kubelet.processes.images import SCRIPT, image_of, words_of
from berth.cluster.kubelet.processes.sandbox import PodSandbox
from berth.cluster.kubelet.restarts import is_restarted
from berth.cluster.pods.kubelet import KubeletContainer, KubeletContainerStatus, KubeletPod
from berth.cluster.times import seconds_of
from berth.runtime.duration import Duration

MINIMUM_GRACE_SECONDS: Final = 2.0
"""What a container gets after SIGTERM when its preStop hook has used up the grace period."""

DEFAULT_GRACE_SECONDS: Final = 30.0

LOST_EXIT: Final = 255
"""The exit code of containers that were lost with their machine."""

MOST_STEPS: Final = 1_000
"""Done at once of what is due; the rest of it another time."""

DEADLINE_EXCEEDED: Final = Rejection(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


class PodLife:
    """Times are unix times. ``version`` grows with all that its status shows.

    ``failure`` is why the node ends the pod, if it does, and ``is_disrupted`` whether that is no
    fault of the pod. ``is_over``: nothing of it runs, nor will.
    """

    def __init__(
        self,
        pod: KubeletPod,
        node: HollowNode,
        plan: PodPlan,
        *,
        begins_at: float,
        stop_seconds: float,
        events: PodEvents,
    ) -> None:
        self.pod = pod
        self.version = 0
        self.start_time: float | None = None
        self.failure: Rejection | None = None
        self.is_disrupted = False
        self.is_stopping = False
        self.is_over = False
        self.sandbox: PodSandbox | None = None
        """What its containers have in common, if somebody needed it."""
        self.containers = [
            ContainerLife(
                container, Role.SIDECAR if container.restart_policy == "Always" else Role.INIT
            )
            for container in pod.spec.init_containers
        ]
        self.containers += [
            ContainerLife(container, Role.MAIN) for container in pod.spec.containers
        ]
        self._node = node
        self._plan = plan
        self._stop_seconds = stop_seconds
        self._events = events
        self._begins_at = begins_at
        self._deadline = inf
        self._kill_at = inf

    @property
    def is_initialized(self) -> bool:
        """Whether the init containers are done, and the sidecars started; it stays so."""
        for container in self.containers:
            if container.role is Role.MAIN and container.has_run:
                return True
        return all(
            container.is_passed for container in self.containers if container.role is not Role.MAIN
        )

    @property
    def running(self) -> set[str]:
        """The names of the containers that run."""
        return {
            container.container.name
            for container in self.containers
            if container.doing is Doing.RUNNING
        }

    def next_due(self) -> float:
        """Return when something happens next; infinity: never by itself."""
        due = min(self._begins_at, self._deadline)
        for container in self.containers:
            due = min(due, container.due)
        return due

    def advance(self, now: float) -> None:
        """Do what is due until *now*."""
        for _ in range(MOST_STEPS):
            due = self.next_due()
            if due > now:
                return
            self._do(due)

    def resume(self, now: float) -> None:
        """Take over what an earlier kubelet process has reported of the pod."""
        status = self.pod.status
        reported = {
            each.name: each
            for each in (*status.init_container_statuses, *status.container_statuses)
        }
        for container in self.containers:
            known = reported.get(container.container.name, KubeletContainerStatus())
            container.plan = self._plan.container(
                container.container, container.role, restarts=known.restart_count
            )
            container.resumes(known, now)
            if container.end is not None and self._is_restarted(container, container.end.exit_code):
                self._pause(container, now)
        self.start_time = now if status.start_time is None else seconds_of(status.start_time)
        self._begin(now)

    def stop(self, now: float, grace_seconds: float) -> None:
        """End all containers, within *grace_seconds* unless one hangs; a repeat can shorten it."""
        if self.is_over:
            return
        kill_at = now + grace_seconds
        if self.is_stopping and kill_at >= self._kill_at:
            return
        first, self.is_stopping = not self.is_stopping, True
        self._begins_at = self._deadline = inf
        self._kill_at = kill_at
        is_initialized = self.is_initialized
        for container in self.containers:
            if container.doing is not Doing.RUNNING:
                container.gives_up(is_initialized=is_initialized)
                continue
            if first:
                self._events.stopping(self.pod, container)
                container.quiet_until = now + _pre_stop_seconds(container)
            if container.role is not Role.SIDECAR or container.is_told:
                self._tell(container, now)
        self._stop_sidecars(now)
        self._check_over()

    def fail(self, failure: Rejection, now: float, grace_seconds: float) -> None:
        """End the pod by the node's own decision; it fails. A repeat can shorten its grace."""
        if not self.is_over:
            self.failure = self.failure or failure
            self.stop(now, grace_seconds)

    def enter(self, sandbox: PodSandbox, now: float) -> None:
        """Let the containers run what they run in *sandbox*, those that run already from *now*."""
        self.sandbox = sandbox
        for container in self.containers:
            if container.doing is Doing.RUNNING and container.sandbox is None:
                self._start_process(container, container.since)
                if container.process is not None:
                    container.ends_at = inf
                container.passes_probes(now)

    def looks_again(self, now: float) -> None:
        """Ask the probes of all containers again whose files have changed."""
        for container in self.containers:
            if container.doing is Doing.RUNNING and container.asks_probes(now):
                self.version += 1
                if not container.ready:
                    self._events.unhealthy(self.pod, container, "Readiness")

    def follow(self, pod: KubeletPod, now: float) -> None:
        """Take in another spec: its deadline, and images, whose containers are started anew."""
        self.pod = pod
        self._set_deadline()
        containers = {each.name: each for each in (*pod.spec.init_containers, *pod.spec.containers)}
        for container in self.containers:
            before, container.container = container.container, containers[container.container.name]
            changed = before.image != container.container.image
            if changed and container.doing is Doing.RUNNING and not self.is_stopping:
                self._events.redefined(pod, container)
                container.terminates(now, exit_code=SIGTERM_EXIT, reason="")
                self._restart(container, now)
        self.version += 1

    def kill(self, name: str, now: float, *, exit_code: int, reason: str) -> None:
        """End the container *name* if it runs; the restart policy decides what follows."""
        for container in self.containers:
            if container.container.name == name and container.doing is Doing.RUNNING:
                self._end(container, now, exit_code=exit_code, reason=reason)

    def lose_machine(self, now: float) -> None:
        """End all that runs: the machine was down. Init containers run again first."""
        running = [container for container in self.containers if container.doing is Doing.RUNNING]
        if not running:
            return
        self.version += 1
        for each in running:
            each.terminates(now, exit_code=LOST_EXIT, reason="Unknown")
        if self.is_stopping:
            self._check_over()
            return
        self._events.sandbox_changed(self.pod)
        again = [each for each in running if self._is_restarted(each, LOST_EXIT)]
        if any(each.role is Role.INIT and each not in again for each in running):
            self._stop_rest(now)
            return
        inits = [container for container in self.containers if container.role is Role.INIT]
        for each in (*again, *(init for init in inits if again and init.doing is Doing.ENDED)):
            each.last, each.end = each.end, None
            each.restarts += 1
            each.doing = Doing.WAITING
        self._start_next(now)
        self._check_mains(now)

    def abandon(self) -> None:
        """Forget all that was to come: somebody else says that the pod has finished."""
        self._begins_at = self._deadline = inf
        for container in self.containers:
            container.due = inf
        self.is_over = True

    def _do(self, now: float) -> None:
        """Do the first thing that is due at *now*."""
        if self._begins_at <= now:
            self._begin(now)
            return
        for container in self.containers:
            if container.due <= now:
                self._go_on(container, now)
                return
        self._deadline = inf
        self._events.deadline_exceeded(self.pod)
        grace = self.pod.spec.termination_grace_period_seconds
        self.fail(DEADLINE_EXCEEDED, now, DEFAULT_GRACE_SECONDS if grace is None else grace)

    def _begin(self, now: float) -> None:
        self._begins_at = inf
        if self.start_time is None:
            self.start_time = now
        self._set_deadline()
        self.version += 1
        self._start_next(now)
        if self.containers[-1].doing is Doing.ENDED:  # from before we were started
            self._check_mains(now)

    def _set_deadline(self) -> None:
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is not None and self.start_time is not None and not self.is_stopping:
            self._deadline = self.start_time + seconds

    def _start_next(self, now: float) -> None:
        """Start whose turn it is: the next init container, or after them all others."""
        for container in self.containers:
            if container.doing is Doing.WAITING:
                self._start(container, now)
            if container.role is not Role.MAIN and not container.is_passed:
                return

    def _go_on(self, each: ContainerLife, now: float) -> None:
        match each.doing:
            case Doing.PULLING:
                self._pulled(each, now)
            case Doing.PULL_BACK_OFF:
                self._start(each, now)
            case Doing.CREATING:
                self._run(each, now)
            case Doing.BACK_OFF:
                self._restart(each, now)
            case Doing.RUNNING if each.ends_at <= now:
                if each.plan.fails_liveness and not each.is_told:
                    self._events.unhealthy(self.pod, each, "Liveness")
                self._end(each, now, exit_code=each.plan.exit_code, reason=each.plan.reason)
            case Doing.RUNNING if (process := each.process) is not None and process.due <= now:
                process.advance(now)
                self.looks_again(now)
                if process.exit_code is not None:
                    self._end(each, now, exit_code=process.exit_code, reason="")
                else:
                    each.due = min(each.starts_at, each.readies_at, each.ends_at, process.due)
            case Doing.RUNNING:
                each.passes_probes(now)
                self.version += 1
                if each.role is Role.SIDECAR and not self.is_stopping:
                    self._start_next(now)
            case _:
                each.due = inf

    def _start(self, each: ContainerLife, now: float) -> None:
        failures = each.restarts + each.failed_pulls
        each.plan = self._plan.container(each.container, each.role, restarts=failures)
        self.version += 1
        if each.plan.pull is None:
            self._create(each, now)
        else:
            self._pull(each, now)

    def _pull(self, each: ContainerLife, now: float) -> None:
        """Get the image of a container, as its ``imagePullPolicy`` says."""
        image, policy, pull = each.container.image, each.container.image_pull_policy, each.plan.pull
        assert pull is not None
        is_there = image in self._node.images
        if is_there and policy != "Always":
            self._create(each, now)
        elif policy == "Never":
            message = f'Container image "{image}" is not present with pull policy of Never'
            self._wait(each, "ErrImageNeverPull", message)
            each.doing, each.due = Doing.PULL_BACK_OFF, now + each.backs_off_pulling(now)
            self._events.never_pulled(self.pod, each, message)
        else:
            self._events.pulling(self.pod, each)
            each.doing, each.due = Doing.PULLING, now
            if pull.error or not is_there:
                each.due = self._node.pull(image, now, pull.seconds)

    def _pulled(self, each: ContainerLife, now: float) -> None:
        pull, image = each.plan.pull, each.container.image
        assert pull is not None
        self._node.pulled(image, None if pull.error else pull.size_bytes)
        if not pull.error:
            self._events.pulled(self.pod, each, pull)
            each.is_pulled = True
            self._create(each, now)
            return
        self._events.pull_failed(self.pod, each, pull.error)
        pause = each.backs_off_pulling(now)
        message = f'Back-off pulling image "{image}": ErrImagePull: {pull.error}'
        self._wait(each, "ImagePullBackOff", message)
        each.doing, each.due = Doing.PULL_BACK_OFF, now + pause

    def _create(self, each: ContainerLife, now: float) -> None:
        if each.plan.create_seconds <= 0:
            self._run(each, now)
            return
        if not each.restarts:
            self._wait(each, "", "")
        each.doing, each.due = Doing.CREATING, now + each.plan.create_seconds

    def _run(self, each: ContainerLife, now: float) -> None:
        each.waits = ("", "")
        each.previous, each.sandbox = each.sandbox, None
        self._start_process(each, now)
        each.runs(now)
        self.version += 1
        self._events.started(self.pod, each, is_pulled=each.is_pulled)
        each.is_pulled = False
        if each.plan.ready_seconds is None and each.container.readiness_probe is not None:
            self._events.unhealthy(self.pod, each, "Readiness")
        if each.role is Role.SIDECAR and each.started:
            self._start_next(now)

    def _start_process(self, each: ContainerLife, now: float) -> None:
        """Start the command of a container, if it is understood."""
        if self.sandbox is None:
            return
        each.sandbox = self.sandbox.sandbox(each.container.name)
        words = words_of_container(self.pod, each.container, each.role)
        if words is not None and each.plan.runs_command:
            each.sandbox.start(words, now)

    def _end(self, each: ContainerLife, now: float, *, exit_code: int, reason: str) -> None:
        each.terminates(now, exit_code=exit_code, reason=reason)
        self.version += 1
        if self.is_stopping:
            self._stop_sidecars(now)
            self._check_over()
        elif self._is_restarted(each, exit_code):
            self._pause(each, now)
        elif each.role is Role.INIT and exit_code == 0:
            self._start_next(now)
        elif each.role is Role.INIT:
            self._stop_rest(now)
        else:
            self._check_mains(now)

    def _is_restarted(self, each: ContainerLife, exit_code: int) -> bool:
        policy = self.pod.spec.restart_policy
        return is_restarted(each.container, each.role, pod_policy=policy, exit_code=exit_code)

    def _pause(self, each: ContainerLife, now: float) -> None:
        """Restart a container that has ended, now or after its back-off."""
        pause = each.backs_off(now)
        if not pause:
            self._restart(each, now)
            return
        each.last, each.end = each.end, None
        meta = self.pod.metadata
        message = (
            f"back-off {Duration.of(pause)} restarting failed container={each.container.name} "
            f"pod={meta.name}_{meta.namespace}({meta.uid})"
        )
        self._wait(each, "CrashLoopBackOff", message)
        self._events.backing_off(self.pod, each)
        each.doing, each.due = Doing.BACK_OFF, now + pause

    def _restart(self, each: ContainerLife, now: float) -> None:
        each.restarts += 1
        self._start(each, now)

    def _check_mains(self, now: float) -> None:
        """See to the end of the pod when all of its main containers have ended for good."""
        if all(
            container.doing is Doing.ENDED
            for container in self.containers
            if container.role is Role.MAIN
        ):
            self._stop_rest(now)

    def _stop_rest(self, now: float) -> None:
        """Stop what still runs when there is nothing left to run for: sidecars."""
        grace = self.pod.spec.termination_grace_period_seconds
        self.stop(now, DEFAULT_GRACE_SECONDS if grace is None else grace)

    def _tell(self, each: ContainerLife, now: float) -> None:
        """Send SIGTERM to a container, after its preStop hook; it is killed when time is up."""
        each.is_told = True
        plan, limit = each.plan, self._kill_at
        quiet = max(now, each.quiet_until)
        if limit > now and quiet >= limit:
            quiet, limit = limit, limit + MINIMUM_GRACE_SECONDS
        ends = quiet + (self._stop_seconds if plan.stop_seconds is None else plan.stop_seconds)
        code = SIGTERM_EXIT
        handles = each.process is not None and each.process.handles("TERM")
        if each.process is not None and handles:
            each.process.interrupt("TERM", quiet)
        if handles or plan.ignores_sigterm or ends > limit:
            ends, code = limit, KILLED
        if plan.hangs:
            ends = inf
        if ends <= each.ends_at:
            each.ends_at = ends
            each.plan = replace(plan, exit_code=code, reason="")
        each.due = max(min(each.ends_at, each.starts_at, each.readies_at, each.process_due), now)

    def _stop_sidecars(self, now: float) -> None:
        """Tell the last sidecar that runs to end when all others have ended."""
        for container in reversed(self.containers):
            if container.doing is Doing.RUNNING:
                if not container.is_told and container.role is Role.SIDECAR:
                    self._tell(container, now)
                if container.role is not Role.SIDECAR or container.is_told:
                    return

    def _check_over(self) -> None:
        if not any(container.doing is Doing.RUNNING for container in self.containers):
            self.is_over = True
            self.version += 1

    def _wait(self, each: ContainerLife, reason: str, message: str) -> None:
        each.waits = (reason, message)
        self.version += 1


def words_of_container(
    pod: KubeletPod, container: KubeletContainer, role: Role
) -> tuple[str, ...] | None:
    """Return what a container runs, if that is understood."""
    script = pod.metadata.annotations.get(SCRIPT, "") if role is Role.MAIN else ""
    return words_of(container.image, container.command, container.args, script)


def needs_sandbox(pod: KubeletPod) -> bool:
    """Tell whether it has to be known what the containers of *pod* see.

    So it is where a command is understood, and where a probe asks a known image for its files.
    """
    if pod.metadata.annotations.get(SCRIPT):
        return True
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if words_of(container.image, container.command, container.args) is not None:
            return True
        probe = container.readiness_probe
        if probe is not None and probe.exec is not None and image_of(container.image).is_known:
            return True
    return False


def _pre_stop_seconds(each: ContainerLife) -> float:
    lifecycle = each.container.lifecycle
    if lifecycle is None or lifecycle.pre_stop is None or lifecycle.pre_stop.sleep is None:
        return 0.0
    return float(lifecycle.pre_stop.sleep.seconds)
