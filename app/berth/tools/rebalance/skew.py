"""The topology spread constraints of running pods, and how far they are from being kept."""

from collections.abc import Iterator
from dataclasses import dataclass

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.pod import TopologySpreadConstraint
from berth.kube.objects.selectors import Selector, compile_selector
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.rebalance.trial import Trial


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of one workload."""

    namespace: str
    controller: str
    """``Kind/name``."""
    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    example: PodInfo
    """A pod that has it; where it may run are the domains."""

    def __str__(self) -> str:
        of = f"{self.namespace}/{self.controller}"
        return f"maxSkew {self.max_skew} over {self.topology_key} of {of}"

    def skew(self, trial: Trial) -> int:
        """Return by how many pods the largest domain is larger than the smallest."""
        counts = [len(pods) for pods in self._domains(trial).values()]
        if not counts:
            return 0
        least = 0 if len(counts) < self.min_domains else min(counts)
        return max(counts) - least

    def most(self, trial: Trial) -> list[PodInfo]:
        """Return the pods in the largest domain, of several in the one of the smallest name."""
        domains = self._domains(trial)
        largest = max(map(len, domains.values()), default=0)
        return next(
            (domains[name] for name in sorted(domains) if len(domains[name]) == largest), []
        )

    def _domains(self, trial: Trial) -> dict[str, list[PodInfo]]:
        """Return the pods that count by domain; nodes where the pods may not run are no domain."""
        domain_of = trial.domains(self.topology_key, self.example)
        pods_of: dict[str, list[PodInfo]] = {domain: [] for domain in domain_of.values()}
        for pod in trial.pods_matching(self.namespace, self.selector):
            if pod.node_name in domain_of and not pod.is_terminating:
                pods_of[domain_of[pod.node_name]].append(pod)
        return pods_of


def constraints(trial: Trial) -> list[Constraint]:
    """Return the constraints of all running pods with a controller, once each, sorted."""
    constraints: dict[tuple[str, str, str], Constraint] = {}
    for pod in (pod for node in trial.nodes for pod in trial.pods_on(node)):
        controller = pod.pod.metadata.controller
        if controller is None:
            continue
        owner = f"{controller.kind}/{controller.name}"
        for written, selector in _written(pod):
            key = (pod.namespace, owner, repr(written))
            constraints.setdefault(
                key,
                Constraint(
                    pod.namespace,
                    owner,
                    written.topology_key,
                    written.max_skew,
                    written.min_domains or 1,
                    selector,
                    pod,
                ),
            )
    return sorted(constraints.values(), key=str)


def _written(pod: PodInfo) -> Iterator[tuple[TopologySpreadConstraint, Selector]]:
    for written in pod.pod.spec.topology_spread_constraints:
        if written.label_selector is None:
            continue
        same = {key: pod.labels[key] for key in written.match_label_keys if key in pod.labels}
        labels = {**written.label_selector.match_labels, **same}
        expressions = written.label_selector.match_expressions
        yield written, compile_selector(LabelSelector(labels, expressions))
