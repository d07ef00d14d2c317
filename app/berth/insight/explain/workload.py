"""A controller of pods, as kubectl names it: ``deployment/web``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from berth.kube.objects.pod import Pod

_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "pod": ("pods", "po"),
    "podgroup": ("podgroups",),
    "compositepodgroup": ("compositepodgroups",),
    "deployment": ("deployments", "deploy"),
    "replicaset": ("replicasets", "rs"),
    "statefulset": ("statefulsets", "sts"),
    "daemonset": ("daemonsets", "ds"),
    "job": ("jobs",),
    "cronjob": ("cronjobs", "cj"),
    "replicationcontroller": ("replicationcontrollers", "rc"),
}
_KIND_OF: Final = {name: kind for kind, others in _KINDS.items() for name in (kind, *others)}
POD: Final = "pod"
POD_GROUP: Final = "podgroup"
COMPOSITE: Final = "compositepodgroup"
GROUPS: Final = (POD_GROUP, COMPOSITE)
WORKLOADS: Final = tuple(kind for kind in _KINDS if kind not in (POD, *GROUPS))


_OF_CRON_JOB: Final = re.compile(r"(.+)-[0-9]{8,}")
"""How the CronJob controller calls a Job: by the minute that it is for."""


def cron_job_of(job: str) -> str:
    """Return the CronJob that a Job of this name is of, empty if of none."""
    match = _OF_CRON_JOB.fullmatch(job)
    return match[1] if match else ""


def kind_named(word: str) -> str | None:
    """Return the kind that *word* names, as kubectl reads it: ``deploy``, ``Deployments.apps``."""
    return _KIND_OF.get(word.lower().partition(".")[0])


@dataclass(frozen=True, slots=True)
class Workload:
    """One of :data:`WORKLOADS`, by kind and name."""

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "Workload":
        """Read ``deployment/web``. Raises ValueError."""
        word, _, name = text.partition("/")
        kind = kind_named(word)
        if kind not in WORKLOADS or not name:
            raise ValueError(f"must be one of {', '.join(WORKLOADS)}, then a slash and a name")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @classmethod
    def of(cls, pod: "Pod") -> "Workload | None":
        """Return what controls *pod*, of any kind; None if it was created by itself.

        A Deployment is told by its ReplicaSet, which has its name and the hash that is a label of
        the pods, too: ReplicaSets need not be read.
        """
        owner = pod.metadata.controller
        if owner is None:
            return None
        if owner.kind == "ReplicaSet":
            suffix = f"-{pod.metadata.labels.get('pod-template-hash')}"
            if owner.name.endswith(suffix):
                return cls("deployment", owner.name.removesuffix(suffix))
        return cls(owner.kind.lower(), owner.name)

    def has(self, pod: "Pod", namespace: str) -> bool:
        """Whether *pod* is one of the workload's in *namespace*, and has not finished.

        The ReplicaSet of a Deployment has it, too; so has the CronJob of a Job, which is told by
        the Job's name.
        """
        if pod.metadata.namespace != namespace or pod.is_terminated:
            return False
        owner = pod.metadata.controller
        if owner is not None and self.kind == "replicaset":
            return owner.kind == "ReplicaSet" and owner.name == self.name
        if owner is not None and self.kind == "cronjob":
            return owner.kind == "Job" and cron_job_of(owner.name) == self.name
        return Workload.of(pod) == self
