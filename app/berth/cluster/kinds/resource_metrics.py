"""``metrics.k8s.io``: what nodes and pods use at the moment, as metrics-server serves it.

Source: ``k8s.io/metrics/pkg/apis/metrics/v1beta1``.
"""

from collections.abc import Mapping
from typing import Final

from berth.cluster.columns.cells import Cell
from berth.cluster.resources import Column, Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Field, ListOf, MapOf, Scalar, Schema
from berth.kube.objects.amounts import ZERO, Amount, amount

GROUP: Final = "metrics.k8s.io"
TYPES: Final = "io.k8s.metrics.pkg.apis.metrics.v1beta1."

_TEXT = Field(Scalar("string"))
_USAGE = Field(MapOf(Scalar("Quantity")), is_required=True)


def _schema(name: str, **fields: Field) -> Schema:
    measured = {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": Field(builtin.meta("ObjectMeta")),
        "timestamp": Field(Scalar("Time"), is_required=True),
        "window": Field(Scalar("string"), is_required=True),
        **fields,
    }
    return Schema(TYPES + name, lambda: measured)


_CONTAINER = Schema(TYPES + "ContainerMetrics", lambda: {"name": _TEXT, "usage": _USAGE})


def _of_node(resource: str) -> Cell:
    return lambda node: node["usage"][resource]


def _of_pod(resource: str) -> Cell:
    """Return the sum over the containers."""

    def cell(pod: Object) -> str:
        used = [amount(container["usage"][resource]) for container in pod["containers"]]
        binary = any(each.binary for each in used)
        return str(Amount(sum(each.nanos for each in used), binary) if used else ZERO)

    return cell


def _columns(cells: Mapping[str, Cell]) -> tuple[Column, ...]:
    return (
        Column("Name", "string", lambda obj: obj["metadata"]["name"], "name"),
        *(Column(name, "string", cell, "quantity") for name, cell in cells.items()),
        Column("Window", "string", lambda obj: obj["window"], "duration"),
    )


NODE_METRICS: Final = ResourceType(
    group=GROUP,
    version="v1beta1",
    kind="NodeMetrics",
    plural="nodes",
    singular="",
    namespaced=False,
    schema=_schema("NodeMetrics", usage=_USAGE),
    verbs=("get", "list"),
    is_measured=True,
    garbage_collected=False,
    columns=_columns({"cpu": _of_node("cpu"), "memory": _of_node("memory")}),
)
POD_METRICS: Final = ResourceType(
    group=GROUP,
    version="v1beta1",
    kind="PodMetrics",
    plural="pods",
    singular="",
    namespaced=True,
    schema=_schema(
        "PodMetrics", containers=Field(ListOf(_CONTAINER), is_required=True, list_type="atomic")
    ),
    verbs=("get", "list"),
    is_measured=True,
    garbage_collected=False,
    columns=_columns({"cpu": _of_pod("cpu"), "memory": _of_pod("memory")}),
)
MEASURED: Final = (NODE_METRICS, POD_METRICS)
