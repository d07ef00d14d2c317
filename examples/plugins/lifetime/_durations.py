"""How long pods of one template run, and how much longer those do that have run for a while."""

import gzip
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.plugin import Pod

APP_LABELS: Final = ("app.kubernetes.io/name", "app")
ENDED: Final = frozenset({"Succeeded", "Failed"})

_HASH: Final = re.compile(r"-(?=[0-9bcdfghjklmnpqrstvwxz]*\d)[0-9bcdfghjklmnpqrstvwxz]{5,10}$")
"""What a Deployment or a CronJob adds to the name of what it creates."""
_NUMBER: Final = re.compile(r"-\d+$")


def template_of(pod: Pod) -> str:
    """Return what pods have in common that run for similar times: namespace, and what made them."""
    meta = pod.metadata
    controller = meta.controller
    if controller is not None:
        name = f"{controller.kind}/{_HASH.sub('', controller.name)}"
    else:
        labels = (meta.labels[label] for label in APP_LABELS if label in meta.labels)
        name = next(labels, None) or _NUMBER.sub("", meta.name)
    return f"{meta.namespace}/{name}"


class Durations:
    """The durations of past pods, in seconds, by template."""

    def __init__(self, by_template: Mapping[str, Iterable[float]]) -> None:
        self._sorted: dict[str, NDArray[np.float64]] = {}
        self._mean_from: dict[str, NDArray[np.float64]] = {}
        """By template and place, the mean of the duration there and all longer ones."""
        for template, durations in by_template.items():
            ordered = np.sort(np.fromiter(durations, np.float64))
            if len(ordered):
                sums = ordered[::-1].cumsum()[::-1]
                self._sorted[template] = ordered
                self._mean_from[template] = sums / np.arange(len(ordered), 0, -1)

    def remaining(self, template: str, age: float) -> float | None:
        """Return how many seconds more a pod of that *age* is expected to run.

        The mean over the past pods that ran for longer than *age*: ``E[L - age | L > age]``. One
        that has outlived them all is expected to run for as long again. None: nothing is known.
        """
        ordered = self._sorted.get(template)
        if ordered is None:
            return None
        place = int(np.searchsorted(ordered, age, side="right"))
        if place == len(ordered):
            return max(age, 1.0)
        return float(self._mean_from[template][place]) - age


def of_recordings(files: Iterable[Path]) -> dict[str, list[float]]:
    """Return how long the pods of recordings had a node, by template.

    A pod that ran at the end counts with the time until then: it runs for at least so long.
    """
    found = defaultdict[str, list[float]](list)
    for file in files:
        started: dict[str, tuple[str, float]] = {}
        last = 0.0
        for op, t, pod in _pods(file):
            uid, last = pod.metadata.uid, t
            if pod.spec.node_name and uid not in started:
                started[uid] = template_of(pod), t
            if uid in started and (op == "delete" or pod.status.phase in ENDED):
                template, since = started.pop(uid)
                if since >= 0:
                    found[template].append(t - since)
                started[uid] = template, -1.0  # the object may stay for a while
        for template, since in started.values():
            if since >= 0:
                found[template].append(last - since)
    return dict(found)


class _Step(msgspec.Struct):
    op: str
    t: float = 0.0
    kind: str = ""
    object: msgspec.Raw = msgspec.Raw()


def _pods(file: Path) -> Iterator[tuple[str, float, Pod]]:
    """Yield what watches told of pods, with the time."""
    opener: Any = gzip.open if file.read_bytes()[:2] == b"\x1f\x8b" else open
    decode_step, decode_pod = msgspec.json.Decoder(_Step).decode, msgspec.json.Decoder(Pod).decode
    with opener(file, "rb") as lines:
        for line in lines:
            if b'"kind":"pods"' in line:
                step = decode_step(line)
                if step.kind == "pods":
                    yield step.op, step.t, decode_pod(step.object)
