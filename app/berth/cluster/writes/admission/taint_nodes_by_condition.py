"""TaintNodesByCondition: a new node takes no pods until a controller has found it ready.

:mod:`berth.cluster.controllers.node_lifecycle` takes the taint away.
"""

from typing import Final

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import ResourceType, section
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

NODES: Final = find("", "v1", "nodes")
NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(Step):
    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_node = not subresource and resource.storage_key == NODES.storage_key
        return operation is Operation.CREATE and is_node

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        spec = section(request.object, "spec")
        present = spec.get("taints") or []
        if not any(NOT_READY.items() <= taint.items() for taint in present):
            spec["taints"] = [*present, dict(NOT_READY)]
