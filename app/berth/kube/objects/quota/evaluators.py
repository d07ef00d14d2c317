"""Evaluators of ``k8s.io/kubernetes/pkg/quota/v1``: what one object of a kind counts for.

All kinds count for ``count/<plural>.<group>``; some for more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, Protocol, TypeVar

from berth.kube.objects.amounts import ONE, ZERO, Amount, Amounts, amounts, count
from berth.kube.objects.pod_amounts import limits_of, requests_of
from berth.kube.objects.pod_defaults import Object
from berth.kube.objects.quota.scopes import (
    attributes_classes,
    claim_matches,
    is_terminating,
    pod_matches,
)

COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
DEMANDED: Final = (
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
)
"""Of these each container must say how much, where they are limited."""

STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
MOST_DEVICES: Final = 32
"""Of one request: what ``All`` may come to."""


class Evaluator:
    """Counts the objects of one kind."""

    updates: Collection[str] = ()
    """Subresources whose updates change what an object counts for; "" is the object."""

    def concerns_update(self, _subresource: str, _new: Object, _old: Object) -> bool:
        """Tell whether an update of one of :attr:`updates` can change that."""
        return True

    def __init__(self, name: str, *, short: str = "") -> None:
        """*name* is ``deployments.apps``; *short* is what the kind may be limited by besides."""
        self.counter = f"count/{name}"
        self._short = short

    def counts(self, name: str) -> bool:
        """Tell whether an object of the kind may use the resource *name*."""
        return name in (self.counter, self._short)

    def usage(self, _obj: Object, _now: float) -> Amounts:
        """Return what an object uses at *now*, in unix seconds."""
        return self.existence()

    def existence(self) -> Amounts:
        """Return what an object uses because it is there."""
        return {name: ONE for name in (self.counter, self._short) if name}

    def matches(self, requirements: Iterable[Object], _obj: Object) -> bool:
        """Tell whether a quota with these scopes is about the object."""
        return not any(True for _ in requirements)

    def missing(self, _names: Iterable[str], _obj: Object) -> str:
        """Return what an object must say, and does not, as these resources are limited."""
        return ""


class Pods(Evaluator):
    updates = ("", "resize")

    def concerns_update(self, subresource: str, new: Object, old: Object) -> bool:
        return bool(subresource) or is_terminating(new) is not is_terminating(old)

    def __init__(self) -> None:
        super().__init__("pods", short="pods")

    def counts(self, name: str) -> bool:
        kind, dot, resource = name.partition(".")
        if not dot or kind not in ("requests", "limits"):
            return name in (self.counter, "pods", *COMPUTE) or name.startswith("hugepages-")
        if resource in COMPUTE:
            return True
        return kind == "requests" and (resource.startswith("hugepages-") or "/" in resource)

    def usage(self, pod: Object, now: float) -> Amounts:
        """Count what runs; of finished pods, and those that should be gone, that they exist."""
        if not _runs(pod, now):
            return {self.counter: ONE}
        used = {self.counter: ONE, "pods": ONE}
        used |= _compute(requests_of(pod), limits_of(pod))
        return used

    def matches(self, requirements: Iterable[Object], pod: Object) -> bool:
        return all(pod_matches(requirement, pod) for requirement in requirements)

    def missing(self, names: Iterable[str], pod: Object) -> str:
        wanted = {*DEMANDED}.intersection(names)
        if not wanted:
            return ""
        silent: dict[str, set[str]] = {}
        spec = pod.get("spec") or {}
        whole = _compute_of(spec)
        for field in ("containers", "initContainers"):
            for container in spec.get(field) or ():
                for name in wanted - _compute_of(container).keys() - whole.keys():
                    silent.setdefault(name, set()).add(container.get("name") or "")
        if not silent:
            return ""
        said = (f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent))
        return f"must specify {'; '.join(said)}"


class Services(Evaluator):
    updates = ("",)

    def __init__(self) -> None:
        super().__init__("services", short="services")

    def counts(self, name: str) -> bool:
        return super().counts(name) or name in ("services.loadbalancers", "services.nodeports")

    def usage(self, service: Object, now: float) -> Amounts:
        spec = service.get("spec") or {}
        kind, ports = spec.get("type"), spec.get("ports") or []
        used = {**super().usage(service, now), "services.loadbalancers": ZERO}
        node_ports = 0
        if kind == "LoadBalancer":
            used["services.loadbalancers"] = ONE
            if spec.get("allocateLoadBalancerNodePorts") is False:
                ports = [port for port in ports if port.get("nodePort")]
        if kind in ("LoadBalancer", "NodePort"):
            node_ports = len(ports)
        return {**used, "services.nodeports": count(node_ports)}


class VolumeClaims(Evaluator):
    updates = ("", "status")

    def concerns_update(self, subresource: str, new: Object, old: Object) -> bool:
        return not subresource or _follows(new) != _follows(old)

    def __init__(self) -> None:
        super().__init__("persistentvolumeclaims", short="persistentvolumeclaims")

    def counts(self, name: str) -> bool:
        plain = name.partition(STORAGE_CLASS)[2] or name
        return super().counts(name) or plain in ("persistentvolumeclaims", "requests.storage")

    def usage(self, claim: Object, now: float) -> Amounts:
        spec, status = claim.get("spec") or {}, claim.get("status") or {}
        used = super().usage(claim, now)
        class_name = spec.get("storageClassName")
        annotations = claim["metadata"].get("annotations") or {}
        class_name = annotations.get(BETA_CLASS) or class_name
        if class_name:
            used[f"{class_name}{STORAGE_CLASS}persistentvolumeclaims"] = ONE
        requested = amounts((spec.get("resources") or {}).get("requests")).get("storage")
        if requested is not None:
            allocated = amounts(status.get("allocatedResources")).get("storage", ZERO)
            storage = max(requested, allocated, key=lambda amount: amount.nanos)
            used["requests.storage"] = storage
            if class_name:
                used[f"{class_name}{STORAGE_CLASS}requests.storage"] = storage
        return used

    def matches(self, requirements: Iterable[Object], claim: Object) -> bool:
        return all(claim_matches(requirement, claim) for requirement in requirements)


class ResourceClaims(Evaluator):
    def __init__(self) -> None:
        super().__init__("resourceclaims.resource.k8s.io")

    def counts(self, name: str) -> bool:
        return super().counts(name) or name.endswith(DEVICE_CLASS)

    def usage(self, claim: Object, now: float) -> Amounts:
        """Count devices by class: of requests with alternatives, the most of each class."""
        used = super().usage(claim, now)
        devices: dict[str, int] = {}
        for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
            most: dict[str, int] = {}
            for device_request in [
                request.get("exactly") or {},
                *(request.get("firstAvailable") or ()),
            ]:
                name = device_request.get("deviceClassName")
                if name:
                    wanted = (
                        MOST_DEVICES
                        if device_request.get("allocationMode") == "All"
                        else device_request.get("count") or 1
                    )
                    most[name] = max(most.get(name, 0), wanted)
            for name, number in most.items():
                devices[name] = devices.get(name, 0) + number
        return used | {f"{name}{DEVICE_CLASS}": count(n) for name, n in devices.items()}


def _follows(claim: Object) -> tuple[object, set[str]]:
    """Return what the status of a claim says that quotas follow."""
    allocated = (claim.get("status") or {}).get("allocatedResources") or {}
    return allocated.get("storage"), attributes_classes(claim)


def _runs(pod: Object, now: float) -> bool:
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    metadata = pod["metadata"]
    end = metadata.get("deletionTimestamp")
    if end is None:
        return True
    ends = datetime.fromisoformat(end.upper()).timestamp()
    return now <= ends + (metadata.get("deletionGracePeriodSeconds") or 0)


def _compute_of(holder: Object) -> Amounts:
    resources = holder.get("resources") or {}
    return _compute(amounts(resources.get("requests")), amounts(resources.get("limits")))


def _compute(requests: Mapping[str, Amount], limits: Mapping[str, Amount]) -> Amounts:
    """Return requests and limits by the names that quotas have for them."""
    used: Amounts = {}
    for name, amount in requests.items():
        if name in COMPUTE or name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif "/" in name:
            used[f"requests.{name}"] = amount
    for name in COMPUTE:
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    return used


SPECIAL: Final[Mapping[str, Evaluator]] = {
    "persistentvolumeclaims": VolumeClaims(),
    "pods": Pods(),
    "resourceclaims.resource.k8s.io": ResourceClaims(),
    "services": Services(),
}
"""By qualified plural: what takes more than counting."""

SHORT: Final = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
"""Kinds that could be limited before there was ``count/``."""


class Counted(Protocol):
    """A kind of objects, by what quotas call it."""

    @property
    def qualified_plural(self) -> str:
        """As in ``deployments.apps``."""
        ...


Kind = TypeVar("Kind", bound=Counted)


def evaluator_of(name: str) -> Evaluator:
    """Return what counts the objects of a namespaced kind, by its qualified plural."""
    special = SPECIAL.get(name)
    return special or Evaluator(name, short=name if name in SHORT else "")


def counted_by(names: Iterable[str], resources: Iterable[Kind]) -> Iterator[Kind]:
    """Yield those of *resources* whose objects use one of the resources *names*."""
    wanted = list(names)
    for resource in resources:
        if any(evaluator_of(resource.qualified_plural).counts(name) for name in wanted):
            yield resource
