"""``/metrics/resources``: requests and limits of every pod (spec §8).

Whether this process leads, and so has anything to say, is for the caller to know.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import NANO
from berth.kube.objects.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Nanos,
    pod_limits,
    pod_requests,
)
from berth.runtime.metrics import go_float

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

REQUEST: Final = "kube_pod_resource_request"
LIMIT: Final = "kube_pod_resource_limit"

_HEAD: Final = "# HELP {name} [STABLE] {text}\n# TYPE {name} gauge\n"
_BYTES: Final = frozenset({MEMORY, "storage", EPHEMERAL_STORAGE})


def pod_resource_lines(pods: Iterable[Pod]) -> Iterator[str]:
    """Yield the text in pieces, about one per pod, so that a caller can let others run in between.

    A family without samples is left out, as Go's client does.
    """
    limits: list[str] = []
    head = _HEAD.format(name=REQUEST, text="What pods ask for, by resource.")
    for pod in pods:
        if pod.spec.node_name and pod.is_terminated:
            continue
        labels = _labels(pod)
        requested = pod_requests(pod, use_status=False, pod_level=True)
        if lines := _lines(REQUEST, labels, requested):
            yield head + lines
            head = ""
        if lines := _lines(LIMIT, labels, pod_limits(pod)):
            limits.append(lines)
    if limits:
        yield _HEAD.format(name=LIMIT, text="What pods may use at most, by resource.")
        yield from limits


def unit_of(resource: str) -> str:
    """Return the ``unit`` label of a resource; empty for those that are counted in pieces."""
    if resource == CPU:
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _labels(pod: Pod) -> str:
    spec, metadata = pod.spec, pod.metadata
    priority = "" if spec.priority is None else spec.priority
    return (
        f'namespace="{metadata.namespace}",pod="{metadata.name}",node="{spec.node_name}",'
        f'scheduler="{_escaped(spec.scheduler_name)}",priority="{priority}"'
    )


def _lines(family: str, labels: str, amounts: Nanos) -> str:
    return "".join(
        f'{family}{{{labels},resource="{name}",unit="{unit_of(name)}"}} {go_float(amount / NANO)}\n'
        for name, amount in amounts.items()
        if amount
    )


def _escaped(name: str) -> str:
    """Write *name* as a label value. Of the labels, only schedulerName may be any text."""
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
