"""Annotations that say how single pods live. Pods of Jobs end by themselves without any.

A value that is no number, or no number that makes sense, counts as missing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from berth.cluster.kubelet.container_plan import COMPLETES, RUNS, ContainerPlan, Role
from berth.cluster.pods.kubelet import KubeletContainer, KubeletPod

RUN_SECONDS: Final = "berth.dev/run-seconds"
"""How long the containers run, in seconds."""
EXIT_CODE: Final = "berth.dev/exit-code"
"""With what they end; 0 is success."""
READY_SECONDS: Final = "berth.dev/ready-seconds"
"""How long they run before they are ready, or ``never``."""
STOP_SECONDS: Final = "berth.dev/stop-seconds"
"""How long they run on after SIGTERM, or ``never``: until they are killed."""

OF_JOB: Final = ContainerPlan(run_seconds=1.0)
LONGEST_SECONDS: Final = 10 * 365 * 86400.0
NEVER: Final = "never"

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class PlainPlan:
    """The same for every start of every main container."""

    main: ContainerPlan = RUNS
    start_seconds: float = 0.0

    @property
    def annotations(self) -> Mapping[str, str]:
        return _NOTHING

    def container(self, container: KubeletContainer, role: Role, *, restarts: int) -> ContainerPlan:
        if role is Role.MAIN:
            return self.main
        return COMPLETES if role is Role.INIT else RUNS


_NOTHING: Final[Mapping[str, str]] = {}
PLAIN: Final = PlainPlan()
JOB: Final = PlainPlan(OF_JOB)


def plan_of(pod: KubeletPod) -> PlainPlan:
    """Return how *pod* lives where nothing but itself says so."""
    controller = pod.metadata.controller
    finishes = (
        controller is not None and controller.kind == "Job" and pod.spec.restart_policy != "Always"
    )
    plan = JOB if finishes else PLAIN
    annotations = pod.metadata.annotations
    return PlainPlan(told(annotations, plan.main)) if annotations else plan


def told(annotations: Mapping[str, str], plan: ContainerPlan) -> ContainerPlan:
    """Return *plan* with what *annotations* say."""
    seconds, code = annotations.get(RUN_SECONDS), annotations.get(EXIT_CODE)
    if seconds is not None or code is not None:
        default = 1.0 if plan.run_seconds is None else plan.run_seconds
        run = _number(float, seconds, default, LONGEST_SECONDS)
        exit_code = _number(int, code, 0, 255)
        plan = replace(plan, run_seconds=run, exit_code=exit_code, reason="", runs_command=False)
    ready = annotations.get(READY_SECONDS)
    if ready is not None:
        number = _number(float, ready, plan.ready_seconds or 0.0, LONGEST_SECONDS)
        plan = replace(plan, ready_seconds=None if ready == NEVER else number)
    stop = annotations.get(STOP_SECONDS)
    if stop == NEVER:
        plan = replace(plan, ignores_sigterm=True)
    elif stop is not None:
        plan = replace(plan, stop_seconds=_number(float, stop, 0.0, LONGEST_SECONDS))
    return plan


def _number(
    read: Callable[[str], Number], text: str | None, default: Number, largest: Number
) -> Number:
    if text is None or len(text) > 20:
        return default
    try:
        number = read(text)
    except ValueError:
        return default
    return number if 0 <= number <= largest else default
