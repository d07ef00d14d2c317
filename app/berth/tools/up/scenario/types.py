"""A scenario file as types."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from berth.runtime.duration import Duration
from berth.scheduler.config.types import ConfigModel
from berth.tools.up.scenario.actions import Action, Manifests, NodeGroup
from berth.tools.up.scenario.expectations import Expectation, Statement
from berth.tools.up.scenario.one_of import exactly_one
from berth.tools.up.scenario.references import Release

API_VERSION: Final = "berth.dev/v1alpha1"
KIND: Final = "Scenario"


class Metadata(ConfigModel):
    """What the scenario is called."""

    name: str = ""
    """A name; the file's without its extension if empty."""


class ControllerManager(ConfigModel):
    """Settings of the controllers: flags of kube-controller-manager, by their names."""

    node_monitor_period: Duration = Duration.of(5)
    """Between two looks at the heartbeats of all nodes."""
    node_monitor_grace_period: Duration = Duration.of(50)
    """How long a node may be silent before it counts as unreachable."""
    terminated_pod_gc_threshold: Annotated[int, Field(ge=0)] = 12_500
    """How many pods that have ended may stay; 0: any number."""


class Cluster(ConfigModel):
    """The cluster on which the scenario runs. It begins with these nodes and nothing else."""

    kubernetes_version: Release = ""
    """The release of Kubernetes that the cluster serves; the one that the scheduler emulates if
    empty."""
    nodes: Annotated[tuple[NodeGroup, ...], Field(min_length=1)] = (NodeGroup(count=3),)
    """Groups of hollow nodes."""
    scheduler_configuration: dict[str, Any] = Field(default_factory=dict)
    """A `KubeSchedulerConfiguration`, without `apiVersion` and `kind`; or `{file: NAME}` with the
    name of a file beside the scenario."""
    kubelet_configuration: dict[str, Any] = Field(default_factory=dict)
    """A `KubeletConfiguration` for all nodes, without `apiVersion` and `kind`; or a file, too."""
    stages: dict[str, Any] = Field(default_factory=dict)
    """How pods live: `Stages` without `apiVersion` and `kind`, such as `{profile: realistic}`; or a
    file, too. Without a seed of its own, that of the scenario counts."""
    node_groups: tuple[str, ...] = ()
    """Files beside the scenario with node groups, which the cluster autoscaler scales."""
    controller_manager: ControllerManager = ControllerManager()
    """Settings of the controllers."""
    objects: Manifests = ()
    """Objects that exist before the first step: manifests, or names of files beside the scenario.
    """


class Step(ConfigModel):
    """What is done at a time, and what is expected then. Steps follow each other."""

    name: str
    """What happens, in a few words; it is printed."""
    at: Duration | None = None
    """Not before this time, counted from when all nodes are ready."""
    wait: Duration | None = None
    """Let so much time pass first."""
    after: Statement | None = None
    """Not before this is so. It is an error if that takes longer than an hour."""
    do: tuple[Action, ...] = ()
    """What is done, in this order."""
    expect: tuple[Expectation, ...] = ()
    """What is expected of it, in this order."""

    @model_validator(mode="after")
    def _one_time(self) -> Self:
        exactly_one(self, ("at", "wait", "after"), or_none=True)
        return self


class Scenario(ConfigModel):
    """A cluster, steps at times, and what is expected to come of them."""

    api_version: Literal["berth.dev/v1alpha1"]
    """`berth.dev/v1alpha1`"""
    kind: Literal["Scenario"]
    """`Scenario`"""
    metadata: Metadata = Metadata()
    """The name."""
    description: str = ""
    """What it shows, in a sentence or two; it is printed."""
    seed: int = 1
    """Of all that is left to chance: with the same seed everything happens again as it did."""
    speed: Annotated[float, Field(ge=0)] = 0.0
    """How many times as fast as real time it may run at most; 0: as fast as it can. `--speed`
    wins."""
    cluster: Cluster = Cluster()
    """The cluster."""
    audit: Duration | None = None
    """How often to check what holds in every cluster: no node has more requested than it can take,
    no pod is lost, every pending pod is explained, no eviction breaks a budget. What happened is
    counted, and printed at the end."""
    invariants: tuple[Statement, ...] = ()
    """What must be so all the time, from the first step to the end of the last."""
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    """What is done and expected."""
