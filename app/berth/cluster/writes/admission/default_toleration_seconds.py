"""DefaultTolerationSeconds: pods stay a while on nodes that are not ready or not reachable."""

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import ResourceType, section
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

TOLERATION_SECONDS = 300
"""How long, unless the pod says otherwise."""

TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

PODS = find("", "v1", "pods")


class DefaultTolerationSeconds(Step):
    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_write = operation in (Operation.CREATE, Operation.UPDATE)
        return is_write and not subresource and resource.storage_key == PODS.storage_key

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        spec = section(request.object, "spec")
        present = spec.get("tolerations") or []
        added = [
            {
                "key": taint,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }
            for taint in TAINTS
            if not any(
                (toleration.get("key") or taint) == taint
                and toleration.get("effect") in (None, "", "NoExecute")
                for toleration in present
            )
        ]
        if added:
            spec["tolerations"] = [*present, *added]
