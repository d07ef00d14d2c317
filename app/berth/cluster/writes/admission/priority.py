"""Priority: pods get the priority of their class; there is one default class at most.

With WorkloadAwarePreemption, so do PodGroups (spec G2.4), and CompositePodGroups (1.37 spec N14).
"""

from collections.abc import Collection
from typing import Final

from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gates import SCHEDULING
from berth.cluster.resources import Object, ResourceType, section
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.by_namespace import ByNamespace
from berth.cluster.writes.admission.refusals import forbidden, name_of
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

PODS = find("", "v1", "pods")
PRIORITY_CLASSES = find("scheduling.k8s.io", "v1", "priorityclasses")
GROUPS: Final = {f"{plural}.{SCHEDULING}" for plural in ("compositepodgroups", "podgroups")}
WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"


class Priority(Step):
    def __init__(self, store: Store, features: Collection[str] = ()) -> None:
        """*features* are the feature gates that are on."""
        self._store = store
        self._groups_have_priorities = WORKLOAD_AWARE_PREEMPTION in features
        self._classes = ByNamespace(store, PRIORITY_CLASSES)

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        if subresource:
            return False
        if resource.storage_key == PODS.storage_key:
            return operation is Operation.CREATE
        if resource.storage_key in GROUPS:
            return operation is Operation.CREATE and self._groups_have_priorities
        is_write = operation in (Operation.CREATE, Operation.UPDATE)
        return is_write and resource.storage_key == PRIORITY_CLASSES.storage_key

    def admit(self, request: AdmissionRequest) -> None:
        """Fill in what the class of a pod or group says; itself may not say otherwise."""
        if request.object is None or request.resource.storage_key == PRIORITY_CLASSES.storage_key:
            return
        spec = section(request.object, "spec")
        if request.resource.storage_key in GROUPS:
            # What the message calls the spec is a guess.
            self._prioritize(request, spec, "pod group spec")
            return
        chosen = self._prioritize(request, spec, "pod spec")
        policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
        if spec.get("preemptionPolicy") not in (None, policy):
            why = (
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
                f"provided in pod spec; priority admission controller computed {policy} from the "
                "given PriorityClass name"
            )
            raise forbidden(request, why)
        spec.setdefault("preemptionPolicy", policy)

    def _prioritize(self, request: AdmissionRequest, spec: Object, called: str) -> Object | None:
        """Fill in class and priority; return the class, None if there is none."""
        class_name = spec.get("priorityClassName")
        chosen = self._class(class_name, request) if class_name else self._default_class()
        if not class_name and chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        priority = (chosen or {}).get("value") or 0
        if spec.get("priority") not in (None, priority):
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in "
                f"{called}; priority admission controller computed {priority} from the given "
                "PriorityClass name"
            )
            raise forbidden(request, why)
        spec["priority"] = priority
        return chosen

    def validate(self, request: AdmissionRequest) -> None:
        """Refuse a second default class."""
        obj = request.object
        if obj is None or not obj.get("globalDefault"):
            return
        name = name_of(request)
        for other in self._default_classes():
            taken = other["metadata"]["name"]
            if taken != name:
                why = (
                    f"PriorityClass {taken} is already marked as default. Only one default can "
                    "exist"
                )
                raise forbidden(request, why)

    def _class(self, class_name: str, request: AdmissionRequest) -> Object:
        try:
            return self._store.get(PRIORITY_CLASSES.storage_key, "", class_name).decode()
        except NotFoundError:
            why = f"no PriorityClass with name {class_name} was found"
            raise forbidden(request, why) from None

    def _default_class(self) -> Object | None:
        """Return the class of pods that name none: of several (a race), the lowest."""
        return min(self._default_classes(), key=lambda each: each.get("value") or 0, default=None)

    def _default_classes(self) -> list[Object]:
        return [each for each in self._classes.get("") if each.get("globalDefault")]
