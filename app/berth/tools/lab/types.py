"""The file that says what is compared, as types."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from berth.kube.objects import quantity
from berth.runtime.duration import Duration
from berth.scheduler.config.presets import Preset
from berth.scheduler.config.types import ConfigModel

API_VERSION: Final = "berth.dev/v1alpha1"
KIND: Final = "Lab"

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=100)]
Watts = Annotated[float, Field(ge=0, allow_inf_nan=False)]


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


class CsvQuantity(ConfigModel):
    """An amount of a resource in a row of a CSV file."""

    column: str
    """Has a number; empty is 0."""
    times: str = ""
    """Another column, by whose number it is multiplied."""
    unit: Literal["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"] = ""
    """The suffix that makes the number a Kubernetes quantity."""


class CsvNodes(ConfigModel):
    """Nodes of a CSV file, one in each row."""

    file: str
    """A file beside this one; `.gz` is supported."""
    name: str
    """The column with their names."""
    allocatable: Annotated[dict[str, CsvQuantity], Field(min_length=1)]
    """By name of the resource."""
    max_pods: Number = 110
    """How many pods each of them takes."""
    labels: dict[str, str] = Field(default_factory=dict)
    """By name of the label, the column with its values; there is no label where it is empty."""


class CsvColumns(ConfigModel):
    """Which columns of a CSV file say what of a job. A row is a job: one pod, or a gang."""

    arrival: str
    """When it comes: a number of `timeUnit`, or a date and time as in ISO 8601."""
    duration: str = ""
    """How long it runs, in `durationUnit`; for ever where it is empty."""
    end: str = ""
    """When it ended, in place of `duration`: it runs as long as there is between the two times."""
    gang_size: str = ""
    """How many pods it has, each with these requests; one if there is no such column."""
    name: str = ""
    """What its pods are called; by number if there is no such column."""
    priority: str = ""
    """The priority of its pods, a whole number; 0 if there is no such column."""
    requests: Annotated[dict[str, CsvQuantity], Field(min_length=1)]
    """What each of its pods requests, by name of the resource."""
    labels: dict[str, str] = Field(default_factory=dict)
    """By name of a label of its pods, the column with its values, such as users and queues."""
    node_labels: dict[str, str] = Field(default_factory=dict)
    """By name of a label of nodes, the column with the values that will do, separated by `|`; any
    where it is empty."""


class CsvSource(ConfigModel):
    """Jobs of a CSV file, which come, run for a time and end. It is read as time goes on."""

    jobs: str
    """A file beside this one with rows in the order in which jobs come; `.gz` is supported."""
    columns: CsvColumns
    time_unit: Duration = Duration.of(1)
    """What arrivals and ends are numbers of."""
    duration_unit: Duration = Duration.of(1)
    """What durations are numbers of."""
    nodes: tuple[NodeGroup, ...] = ()
    node_rows: CsvNodes | None = None
    """In place of `nodes`, or beside them."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.nodes and self.node_rows is None:
            raise ValueError("nodes or nodeRows are needed")
        if self.columns.duration and self.columns.end:
            raise ValueError("columns.duration and columns.end exclude each other")
        return self


class WorkloadSource(ConfigModel):
    """Where nodes and pods come from: one of these."""

    recording: RecordingSource | None = None
    csv: CsvSource | None = None
    trace: TraceSource | None = None
    manifests: ManifestSource | None = None
    generator: GeneratorSource | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files that it is made from."""
        if self.trace is not None:
            return (self.trace.nodes, self.trace.pods)
        if self.csv is not None:
            nodes = self.csv.node_rows
            return (self.csv.jobs, *((nodes.file,) if nodes is not None else ()))
        if self.recording is not None:
            return self.recording.files
        if self.manifests is not None:
            return self.manifests.files
        return self.generator.objects if self.generator is not None else ()

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(
                "exactly one of recording, csv, trace, manifests and generator is needed"
            )
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


class PowerCurve(ConfigModel):
    """What nodes draw by how much of a resource is requested. Of several curves, all count."""

    node_labels: dict[str, str] = Field(default_factory=dict)
    """The labels of the nodes that it is for; all if empty."""
    resource: str = "cpu"
    watts: Annotated[tuple[tuple[Share, Watts], ...], Field(min_length=1)]
    """Percent of the resource that pods have requested, rising, and watts; between them straight
    lines."""
    each: str = ""
    """The watts are those of so much of the resource, such as `"1000"`: a node that has four times
    as much draws four times as much. Those of the whole node if empty."""
    empty: Watts | None = None
    """What is drawn by nodes without pods, such as 0 if they are turned off; by default as at 0%.
    """

    @field_validator("watts")
    @classmethod
    def _rising(cls, points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        shares = [share for share, _ in points]
        if shares != sorted(set(shares)):
            raise ValueError("percents must rise from one to the next")
        return points

    @field_validator("each")
    @classmethod
    def _quantity(cls, each: str) -> str:
        if each and quantity.parse(each) <= 0:
            raise ValueError("must be more than 0")
        return each


class Price(ConfigModel):
    """What nodes cost while they have pods."""

    label: str = "node.kubernetes.io/instance-type"
    """A label of nodes."""
    per_hour: Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(min_length=1)]
    """By its value, the cost of an hour; nodes with other values cost nothing."""


class Report(ConfigModel):
    """What tables and plots are about."""

    at: tuple[int, ...] = ()
    """The columns of tables: seconds, or how much has been requested in percent. By default four.
    """
    measures: tuple[str, ...] = ()
    """What there are tables and plots of, and what is compared; by default everything that is
    measured."""


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
    waiting_by: str = ""
    """The label of pods by whose values waiting is told apart, such as that of the queue; by
    priority if empty."""
    power: tuple[PowerCurve, ...] = ()
    """What nodes draw, for the measures `power` and `energy`."""
    price: Price | None = None
    """What nodes cost, for the measures `cost per hour` and `cost`."""
    report: Report = Report()
    """What is shown of all that is measured."""

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [policy.name for policy in self.policies]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"policies: there are several of the name {name!r}")
        return self
