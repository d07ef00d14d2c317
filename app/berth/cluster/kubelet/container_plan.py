"""Plans of hollow containers: a choice for each start, because no process makes one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from berth.cluster.pods.kubelet import KubeletContainer


class Role(Enum):
    """What a container is to its pod."""

    INIT = auto()
    SIDECAR = auto()
    """An init container with ``restartPolicy: Always``."""
    MAIN = auto()


@dataclass(frozen=True, slots=True)
class Pull:
    """How an image comes that the node does not have."""

    seconds: float = 0.0
    size_bytes: int = 0
    error: str = ""
    """Why it does not come; empty: it does."""


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """How a container lives from one start to its end. Times are in seconds."""

    pull: Pull | None = None
    """None: its image is on the node, whichever it is."""
    create_seconds: float = 0.0
    """From having the image to running."""
    ready_seconds: float | None = 0.0
    """From passing the initial delay of its probes to being ready; None: never."""
    run_seconds: float | None = None
    """From running to its end; None: until it is stopped."""
    runs_command: bool = True
    """Whether its command decides when and how it ends, if that is understood."""
    exit_code: int = 0
    reason: str = ""
    """Of its end, such as ``OOMKilled``; empty: what follows from the exit code."""
    fails_liveness: bool = False
    """Whether its end is that the kubelet kills it because its liveness probe fails."""
    stop_seconds: float | None = None
    """From SIGTERM to its end; None: as all others on the node."""
    ignores_sigterm: bool = False
    """Whether it runs until it is killed at the end of the grace period."""
    hangs: bool = False
    """Whether not even that ends it: the pod has to be deleted by force."""


RUNS: Final = ContainerPlan()
"""Until it is stopped."""
COMPLETES: Final = ContainerPlan(run_seconds=0.0)
"""At once, and well."""


class PodPlan(Protocol):
    """How the containers of one pod live."""

    @property
    def start_seconds(self) -> float:
        """From being taken by the node to the start of the first container."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """What the kubelet notes on the pod, such as what it uses."""
        ...

    def container(self, container: KubeletContainer, role: Role, *, restarts: int) -> ContainerPlan:
        """Return how *container* lives after its next start; it has failed *restarts* times."""
        ...
