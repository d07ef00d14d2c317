"""Nodes that a DaemonSet is for, and the pod that it makes for one of them."""

from functools import partial
from typing import Final, NamedTuple

import msgspec

from berth.cluster.controllers.claims import owner_reference
from berth.cluster.controllers.views import NodeView, WorkloadView
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.controllers import DaemonPodView, PodView
from berth.cluster.resources import Object
from berth.cluster.strategies.workloads import TEMPLATE_GENERATION
from berth.kube.objects.daemons import daemon_tolerations
from berth.kube.objects.pod import PodSpec
from berth.kube.objects.selectors import NAME_FIELD, required_node_affinity
from berth.kube.objects.taints import NO_EXECUTE, NO_SCHEDULE, untolerated

DAEMON_SETS: Final = find("apps", "v1", "daemonsets")
HASH: Final = "controller-revision-hash"
GENERATION: Final = "pod-template-generation"


class Verdict(NamedTuple):
    """What a node means to a DaemonSet."""

    gets_pod: bool
    keeps_pod: bool
    """Whether one that is there may stay: a taint of effect NoSchedule drives nobody out."""


GETS: Final = Verdict(gets_pod=True, keeps_pod=True)
KEEPS: Final = Verdict(gets_pod=False, keeps_pod=True)
UNFIT: Final = Verdict(gets_pod=False, keeps_pod=False)


class Eligibility:
    """The verdicts about nodes for one template, kept as long as the nodes do not change."""

    def __init__(self, template: Object, *, comparisons: bool = False) -> None:
        """*comparisons* as in :func:`berth.kube.objects.taints.tolerates`."""
        self.template = template
        self._untolerated = partial(untolerated, comparisons=comparisons)
        pod: Object = template.get("spec") or {}
        spec = msgspec.convert(pod, PodSpec)
        self._node_name = pod.get("nodeName") or ""
        self._affinity = required_node_affinity(spec)
        added = daemon_tolerations(host_network=spec.host_network)
        self._tolerations = (*spec.tolerations, *added)
        self._verdicts: dict[str, tuple[NodeView, Verdict]] = {}

    def verdict(self, node: NodeView) -> Verdict:
        """Decide as NodeShouldRunDaemonPod upstream."""
        known = self._verdicts.get(node.metadata.name)
        if known is not None and known[0] is node:
            return known[1]
        verdict = self._evaluate(node)
        self._verdicts[node.metadata.name] = (node, verdict)
        return verdict

    def forget(self, node: str) -> None:
        self._verdicts.pop(node, None)

    def _evaluate(self, node: NodeView) -> Verdict:
        meta = node.metadata
        if self._node_name not in ("", meta.name):
            return UNFIT
        if self._affinity is not None and not self._affinity.matches(meta.labels or {}, meta.name):
            return UNFIT
        taints, tolerations = node.spec.taints, self._tolerations
        if self._untolerated(taints, tolerations, effects=(NO_SCHEDULE, NO_EXECUTE)) is None:
            return GETS
        stays = self._untolerated(taints, tolerations, effects=(NO_EXECUTE,)) is None
        return KEEPS if stays else UNFIT


def node_of(pod: PodView) -> str:
    """Return the node of *pod*, or the one that it is for; empty if it does not say."""
    if pod.spec.node_name or not isinstance(pod, DaemonPodView):
        return pod.spec.node_name or ""
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    for term in required.node_selector_terms if required else ():
        for requirement in term.match_fields:
            if requirement.key == NAME_FIELD and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def pod_for(daemon_set: WorkloadView, name: str, node: str, revision: str) -> Object:
    """Return the pod *name* for *node*; the scheduler is to place it there and nowhere else."""
    meta = daemon_set.metadata
    template: Object = daemon_set.spec.get("template") or {}
    of_template: Object = template.get("metadata") or {}
    labels = {**(of_template.get("labels") or {}), HASH: revision}
    generation = (meta.annotations or {}).get(TEMPLATE_GENERATION)
    if generation:
        labels[GENERATION] = generation
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{meta.name}-",
            "namespace": meta.namespace,
            "labels": labels,
            **{
                field: of_template[field]
                for field in ("annotations", "finalizers")
                if of_template.get(field)
            },
            "ownerReferences": [owner_reference(daemon_set, DAEMON_SETS)],
        },
        "spec": _only_on(template.get("spec") or {}, node),
    }


def _only_on(spec: Object, node: str) -> Object:
    here = {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}
    affinity: Object = spec.get("affinity") or {}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]},
    }
    tolerations = [*(spec.get("tolerations") or ())]
    for daemon_toleration in daemon_tolerations(host_network=bool(spec.get("hostNetwork"))):
        toleration = {
            "key": daemon_toleration.key,
            "operator": daemon_toleration.operator,
            "effect": daemon_toleration.effect,
        }
        if toleration not in tolerations:
            tolerations.append(toleration)
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": node_affinity},
        "tolerations": tolerations,
    }
