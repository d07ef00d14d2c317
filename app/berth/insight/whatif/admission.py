"""Admission of pods by the API server before scheduling: priority, defaults, quotas.

PriorityClass, LimitRange and ResourceQuota, in the order of the API server and with its sentences.
Webhooks and admission policies are left out: nobody can ask them without creating something. Kinds
that nobody could read are left out, too, and the answer says so.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from berth.kube.objects import amounts
from berth.kube.objects.amounts import Amounts
from berth.kube.objects.cluster import PriorityClass
from berth.kube.objects.limit_ranges import claim_offences, in_one, pod_offences, set_defaults
from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_defaults import SYSTEM_PRIORITIES, Object, default_pod
from berth.kube.objects.policy import LimitRange, ResourceQuota
from berth.kube.objects.quota.charging import QuotaError, charged, concerns, stats, wanted_by
from berth.kube.objects.quota.evaluators import evaluator_of
from berth.runtime.errors import UNREADABLE
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.words import listed

log = logging.getLogger(__name__)

PRIORITY_CLASS: Final = Kind(
    "/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass, namespaced=False
)
LIMIT_RANGE: Final = Kind("/api/v1/limitranges", LimitRange)
RESOURCE_QUOTA: Final = Kind("/api/v1/resourcequotas", ResourceQuota)
KINDS: Final[Mapping[str, Kind[Any]]] = {
    kind.name: kind for kind in (PRIORITY_CLASS, LIMIT_RANGE, RESOURCE_QUOTA)
}
"""What admission goes by. A scheduler does not watch them: they are listed when somebody asks."""

_PLURALS: Final = {
    PRIORITY_CLASS.name: "PriorityClasses",
    LIMIT_RANGE.name: "LimitRanges",
    RESOURCE_QUOTA.name: "ResourceQuotas",
}

Policies = Mapping[str, Sequence[KubeStruct]]
"""Objects by kind; a kind that is not there could not be read."""

PODS: Final = "pods"
CLAIMS: Final = "persistentvolumeclaims"
LEFT_OUT: Final = "webhooks and admission policies"


def read_policies(kind: Kind[Any], items: Sequence[bytes | msgspec.Raw]) -> list[KubeStruct]:
    """Decode objects of one of :data:`KINDS`, without what nobody needs of their metadata.

    One that is malformed is left out, and logged.
    """
    objects: list[KubeStruct] = []
    for item in items:
        try:
            obj = kind.decode_bare(bytes(item))
        except UNREADABLE as exc:
            log.warning("an object was left out", extra={"kind": kind.name, "error": str(exc)})
            continue
        meta = ObjectMeta(name=obj.metadata.name, namespace=obj.metadata.namespace)
        objects.append(msgspec.structs.replace(obj, metadata=meta))
    return objects


async def nothing_known() -> Policies:
    """Read nothing, for who has nobody to ask."""
    return {}


class AdmissionError(Exception):
    """The API server would refuse all pods like this; the message is its own."""


@dataclass(slots=True)
class _Quota:
    name: str
    written: Object
    hard: Amounts
    used: Amounts


@dataclass(slots=True)
class Admission:
    """The rules of one cluster, and what of its quotas is used so far."""

    policies: Policies = field(default_factory=dict)
    now: float = 0.0
    """In seconds since 1970."""
    _classes: dict[str, PriorityClass] = field(init=False)
    _ranges: dict[str, list[Object]] = field(init=False)
    _quotas: dict[str, list[_Quota]] = field(init=False)

    def __post_init__(self) -> None:
        system = (_class(name, value) for name, value in SYSTEM_PRIORITIES.items())
        self._classes = {class_.metadata.name: class_ for class_ in system}
        for found in self._of(PRIORITY_CLASS):
            self.add_class(found)
        self._ranges, self._quotas = {}, {}
        for limit_range in self._of(LIMIT_RANGE):
            ranges = self._ranges.setdefault(limit_range.metadata.namespace, [])
            ranges.append(msgspec.to_builtins(limit_range.spec))
        for quota in sorted(self._of(RESOURCE_QUOTA), key=lambda quota: quota.metadata.name):
            written = msgspec.to_builtins(quota)
            one = _Quota(quota.metadata.name, written, *stats(written))
            self._quotas.setdefault(quota.metadata.namespace, []).append(one)

    def _of(self, kind: Kind[Any]) -> Sequence[Any]:
        return self.policies.get(kind.name, ())

    def add_class(self, class_: PriorityClass) -> None:
        """Let a PriorityClass be there, in place of one of its name."""
        self._classes[class_.metadata.name] = class_

    def set_priority(self, name: str, value: int) -> None:
        """Let the class *name* have this value."""
        known = self._classes.get(name)
        self.add_class(
            _class(name, value) if known is None else msgspec.structs.replace(known, value=value)
        )

    @property
    def in_words(self) -> str:
        """Say what counts and what does not."""
        counts = [plural for name, plural in _PLURALS.items() if name in self.policies]
        missing = [plural for name, plural in _PLURALS.items() if name not in self.policies]
        left_out = f"excludes {LEFT_OUT}"
        if missing:
            left_out += f", and {listed(missing)}, which could not be read"
        return f"includes {listed(counts)}; {left_out}" if counts else left_out

    # What is written into pods.

    def admit(self, pod: Object, *, namespace: str) -> None:
        """Give *pod* the priority of its class, and its containers what LimitRanges say.

        Raises AdmissionError.
        """
        spec: Object = pod.setdefault("spec", {})
        self._prioritize(spec)
        ranges = self._ranges.get(namespace, ())
        for limits in ranges:
            set_defaults(pod, limits)
        if ranges:
            default_pod(spec)  # again: requests follow from limits

    def _prioritize(self, spec: Object) -> None:
        name = spec.get("priorityClassName")
        chosen = self._classes.get(name) if name else self._default_class()
        if chosen is None:
            if name and spec.get("priority") is None:
                raise AdmissionError(self._unknown(name))
            return
        spec["priorityClassName"] = chosen.metadata.name
        if spec.get("priority") is None:
            spec["priority"] = chosen.value
        if spec.get("preemptionPolicy") is None and chosen.preemption_policy is not None:
            spec["preemptionPolicy"] = chosen.preemption_policy

    def _unknown(self, name: str) -> str:
        if PRIORITY_CLASS.name in self.policies:
            return f"no PriorityClass with name {name} was found"
        return (
            f"priorityClassName: {name!r}: not known, for PriorityClasses could not be read; give"
            " its value in priorityClasses, or the PriorityClass beside the template"
        )

    def _default_class(self) -> PriorityClass | None:
        """Return the class of pods that name none: the lowest, should several claim to be it."""
        defaults = [class_ for class_ in self._classes.values() if class_.global_default]
        return min(defaults, key=lambda class_: class_.value, default=None)

    # What is created.

    def create(
        self, pod: Object, names: Sequence[str], *, namespace: str, claims: Sequence[Object] = ()
    ) -> tuple[int, str]:
        """Create pods like *pod*, one after the other, each with *claims* of its own.

        Return how many of *names* can be, and why the next cannot; empty if all can.
        """
        first = next(iter(names), "")
        for offence in self._offences(pod, claims, namespace):
            return 0, f'{PODS} "{first}" is forbidden: {offence}'
        uses = []
        try:
            for plural, stem, obj in _objects(pod, claims):
                called = f'{plural} "{stem}{first}" is forbidden'
                uses.append((plural, stem, self._uses(plural, obj, namespace)))
        except QuotaError as exc:
            return 0, f"{called}: {exc}"
        for number, name in enumerate(names):
            used: dict[str, Amounts] = {}
            try:
                for plural, stem, asked in uses:
                    called = f'{plural} "{stem}{name}" is forbidden'
                    for quota, amount in asked:
                        before = used.get(quota.name, quota.used)
                        used[quota.name] = charged(quota.name, amount, before, quota.hard)
            except QuotaError as exc:
                return number, f"{called}: {exc}"
            for quota in self._quotas.get(namespace, ()):
                quota.used = used.get(quota.name, quota.used)
        return len(names), ""

    def _offences(self, pod: Object, claims: Sequence[Object], namespace: str) -> Iterator[str]:
        for limits in self._ranges.get(namespace, ()):
            offences = dict.fromkeys(pod_offences(limits, pod))
            for claim in claims:
                offences |= dict.fromkeys(claim_offences(limits, claim))
            if offences:
                yield in_one(offences)

    def _uses(self, plural: str, obj: Object, namespace: str) -> list[tuple[_Quota, Amounts]]:
        """Return what one more object like *obj* uses of each quota; raises QuotaError."""
        evaluator = evaluator_of(plural)
        uses = []
        for quota in self._quotas.get(namespace, ()):
            if concerns(quota.written, evaluator, obj):
                wanted = wanted_by(evaluator, obj, None, now=self.now)
                uses.append((quota, amounts.masked(wanted, quota.hard)))
        return uses

    def release(self, pod: Pod) -> None:
        """Give back what *pod*, which goes, has used of quotas."""
        quotas = self._quotas.get(pod.metadata.namespace)
        if not quotas:
            return
        evaluator, written = evaluator_of(PODS), self.written(pod)
        for quota in quotas:
            try:
                if concerns(quota.written, evaluator, written):
                    freed = amounts.masked(evaluator.usage(written, self.now), quota.hard)
                    quota.used = amounts.subtracted(quota.used, freed)
            except QuotaError:  # made before there was the quota
                continue

    def written(self, pod: Pod) -> Object:
        """Return the JSON of *pod*, with the class that its priority is of."""
        written: Object = msgspec.to_builtins(pod)
        classes = [class_ for class_ in self._classes.values() if class_.value == pod.spec.priority]
        if len(classes) == 1:
            written.setdefault("spec", {})["priorityClassName"] = classes[0].metadata.name
        return written


def _objects(pod: Object, claims: Sequence[Object]) -> Iterator[tuple[str, str, Object]]:
    """Yield what is made for a pod: kind, what its name begins with before the pod's, object."""
    for claim in claims:
        yield CLAIMS, f"{claim['metadata'].get('name', '')}-", claim
    yield PODS, "", pod


def _class(name: str, value: int) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value)
