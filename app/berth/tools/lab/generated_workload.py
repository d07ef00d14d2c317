"""Pods that come and go at random times."""

from collections.abc import Sequence
from itertools import accumulate
from math import log
from pathlib import Path
from typing import Any

from berth.insight.whatif import manifests
from berth.insight.whatif.admission import Admission
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.tools.lab.chance import Chance
from berth.tools.lab.manifest_workload import nodes_of, read, rendered
from berth.tools.lab.trace import called
from berth.tools.lab.types import GeneratorSource
from berth.tools.lab.workload import MEASUREMENTS, Arrival, Change, ticks


class GeneratedWorkload:
    """A Poisson process of pods with exponentially distributed lifetimes."""

    is_timed = True
    resource = ""
    length = 0.0
    changes: Sequence[Change] = ()
    warnings: Sequence[str] = ()

    def __init__(self, source: GeneratorSource, beside: Path) -> None:
        """Make the templates; LabError, ManifestError or QuestionError names what is wrong."""
        self._source = source
        self.interval = max(round(source.count * source.every.seconds / MEASUREMENTS), 1)
        render = rendered(read(beside, source.objects)) if source.objects else None
        self.nodes: Sequence[Node] = list(nodes_of(source.nodes))
        self.objects: Sequence[Any] = render.objects if render else ()
        admission = render.admission() if render else Admission()
        self.pods: Sequence[Pod] = [
            manifests.replicas(
                group.manifest, 1, at=f"pods[{i}].manifest", admission=admission, taken=(), most=1
            ).pods[0]
            for i, group in enumerate(source.pods)
        ]

    def arrivals(self, chance: Chance) -> Sequence[Arrival]:
        groups = self._source.pods
        shares = list(accumulate(group.weight for group in groups))
        now, arrivals = 0.0, []
        for number in range(self._source.count):
            now += _exponential(chance, self._source.every.seconds)
            drawn = chance.random() * shares[-1]
            at = next(i for i, share in enumerate(shares) if drawn < share)
            lifetime = groups[at].lifetime
            pod = self.pods[at]
            arrivals.append(
                Arrival(
                    called(pod, f"{pod.metadata.name}-{number}"),
                    now,
                    None if lifetime is None else _exponential(chance, lifetime.seconds),
                )
            )
        return arrivals


def _exponential(chance: Chance, mean: float) -> float:
    return ticks(-mean * log(1 - chance.random()))
