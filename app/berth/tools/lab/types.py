"""The file that says what is compared, as types."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from berth.runtime.duration import Duration
from berth.scheduler.config.presets import Preset
from berth.scheduler.config.types import ConfigModel

API_VERSION: Final = "berth.dev/v1alpha1"
KIND: Final = "Lab"

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1, le=1_000_000)]


class Metadata(ConfigModel):
    """What the comparison is called."""

    name: str = ""


class TraceSource(ConfigModel):
    """A trace in the CSV format of the 2023 GPU cluster trace. Pods come one after the other."""

    nodes: str
    """A file beside this one with the columns sn, cpu_milli, memory_mib, gpu and model; `.gz` is
    supported."""
    pods: str
    """A file with the columns name, cpu_milli, memory_mib, num_gpu, gpu_milli and, optionally,
    gpu_spec."""
    resource: str = "example.com/gpu-milli"
    """The extended resource that GPUs become, a thousand of it for each."""
    model_label: str = "example.com/gpu-model"
    """The label of nodes that has the model of their GPUs."""
    shuffle: bool = True
    """Whether pods come in random order; by name if not."""
    tune: Amount | None = None
    """Draw pods again, or leave pods out, until all of them request so many times the GPUs that
    there are."""


class ManifestSource(ConfigModel):
    """Nodes and pods of manifests. Pods come one after the other."""

    files: Annotated[tuple[str, ...], Field(min_length=1)]
    """Files beside this one: nodes, pods, workloads, and what has a part in where pods go."""
    shuffle: bool = False
    """Whether pods come in random order; as in the files if not."""
    resource: str = "cpu"
    """Tells how far a run is: how much of it has been requested."""


class NodeGroup(ConfigModel):
    """Nodes that are alike."""

    count: Number = 1
    manifest: dict[str, Any]
    """A Node; several get numbered names."""


class PodGroup(ConfigModel):
    """Pods that are alike."""

    weight: Amount = 1.0
    """How often they come, relative to others."""
    manifest: dict[str, Any]
    """A Pod, or a workload with a template; the pods get numbered names."""
    lifetime: Duration | None = None
    """How long such a pod runs on average, exponentially distributed; for ever if empty."""


class GeneratorSource(ConfigModel):
    """Pods that come at random times and run for random times."""

    nodes: Annotated[tuple[NodeGroup, ...], Field(min_length=1)]
    pods: Annotated[tuple[PodGroup, ...], Field(min_length=1)]
    objects: tuple[str, ...] = ()
    """Files beside this one with what has a part in where pods go, such as PriorityClasses."""
    count: Number
    """How many pods come."""
    every: Duration
    """The average time between two of them, exponentially distributed."""


class RecordingSource(ConfigModel):
    """What happened to a recorded cluster, apart from what its scheduler did."""

    files: Annotated[tuple[str, ...], Field(min_length=1)]
    """Files beside this one that were written by `--record`: all of a process, in any order."""


class WorkloadSource(ConfigModel):
    """Where nodes and pods come from: one of these."""

    recording: RecordingSource | None = None
    trace: TraceSource | None = None
    manifests: ManifestSource | None = None
    generator: GeneratorSource | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files that it is made from."""
        if self.trace is not None:
            return (self.trace.nodes, self.trace.pods)
        if self.recording is not None:
            return self.recording.files
        if self.manifests is not None:
            return self.manifests.files
        return self.generator.objects if self.generator is not None else ()

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("exactly one of recording, trace, manifests and generator is needed")
        return self


class PolicySource(ConfigModel):
    """One way to schedule."""

    name: Annotated[str, Field(min_length=1)]
    preset: Preset | None = None
    """A configuration that comes with berth."""
    config: dict[str, Any] = Field(default_factory=dict)
    """A `KubeSchedulerConfiguration`, without `apiVersion` and `kind`; or `{file: NAME}` with the
    name of a file beside this one."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.preset is not None and self.config:
            raise ValueError("preset and config exclude each other")
        return self


class Seeds(ConfigModel):
    """So many seeds that follow each other."""

    first: int = 1
    count: Annotated[int, Field(ge=1, le=10_000)] = 10


class Report(ConfigModel):
    """What tables and plots are about."""

    at: tuple[int, ...] = ()
    """The columns of tables: seconds, or how much has been requested in percent. By default four.
    """
    measures: tuple[str, ...] = ()
    """What there are tables and plots of; by default everything that is measured."""


class Lab(ConfigModel):
    """A workload, and the policies that are compared on it."""

    api_version: Literal["berth.dev/v1alpha1"]
    kind: Literal["Lab"]
    metadata: Metadata = Metadata()
    description: str = ""
    workload: WorkloadSource
    policies: Annotated[tuple[PolicySource, ...], Field(min_length=1)]
    plugin_dirs: tuple[str, ...] = ()
    """Folders beside this file with plugins."""
    seeds: Seeds = Seeds()
    """Each policy is run once with each seed, which gives all policies the same pods in the same
    order."""
    random: Literal["python", "go"] = "python"
    """Whose generator the seed is for. `go` draws as the simulator of the published experiment."""
    ties: Literal["random", "nodeOrder"] = "random"
    """Which of several best nodes is taken: any, or the first in an order that the seed gives."""
    report: Report = Report()
    """What is shown of all that is measured."""

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [policy.name for policy in self.policies]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"policies: there are several of the name {name!r}")
        return self
