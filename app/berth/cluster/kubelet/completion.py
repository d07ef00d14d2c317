"""How pods that are meant to end do so: after how long, and with which exit code.

Pods of Jobs end by themselves. Annotations say how, on the pod or on the template it is made from,
and have any other pod end whose ``restartPolicy`` is not ``Always``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from berth.cluster.kubelet.kubelet_pod import KubeletPod

RUN_SECONDS: Final = "berth.dev/run-seconds"
"""Annotation: how long the containers run, in seconds."""
EXIT_CODE: Final = "berth.dev/exit-code"
"""Annotation: with what they end; 0 is success."""

DEFAULT_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 10 * 365 * 86400.0

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of a pod's containers. Those that fail are restarted if *restarts*."""

    seconds: float = DEFAULT_SECONDS
    exit_code: int = 0
    restarts: bool = False
    reason: str = ""
    """What the container status says of it; empty: what follows from the exit code."""


def completion_of(pod: KubeletPod) -> Completion | None:
    """Return how *pod* ends; None: it runs until it is deleted.

    An annotation that is no number, or no number that makes sense, counts as missing.
    """
    if pod.spec.restart_policy == "Always":
        return None
    annotations, controller = pod.metadata.annotations, pod.metadata.controller
    is_told = RUN_SECONDS in annotations or EXIT_CODE in annotations
    if not is_told and (controller is None or controller.kind != "Job"):
        return None
    seconds = _number(float, annotations.get(RUN_SECONDS), DEFAULT_SECONDS, LONGEST_SECONDS)
    exit_code = _number(int, annotations.get(EXIT_CODE), 0, 255)
    restarts = exit_code != 0 and pod.spec.restart_policy == "OnFailure"
    return Completion(seconds, exit_code, restarts)


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
