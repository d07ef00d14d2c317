"""From rules to plans: which outcomes a pod draws, and how its containers live by them."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from berth.cluster.kubelet.annotations import plan_of, told
from berth.cluster.kubelet.container_life import KILLED
from berth.cluster.kubelet.container_plan import ContainerPlan, PodPlan, Pull, Role
from berth.cluster.kubelet.stages.load import rules_of
from berth.cluster.kubelet.stages.types import Match, Outcome, Rule, Stages
from berth.cluster.kubelet.usage import PREFIX
from berth.cluster.pods.kubelet import KubeletContainer, KubeletPod
from berth.kube.objects.resources import CPU

ROLES: Final = {Role.INIT: "Init", Role.SIDECAR: "Sidecar", Role.MAIN: "Main"}

FAILING_PULL_SECONDS: Final = 1.0
"""How long it takes to learn that an image does not come."""

DEFAULT_RUN_SECONDS: Final = 1.0
"""How long a container runs that ends, if it is not said."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The outcome of a rule for one pod."""

    match: Match
    outcome: Outcome


@dataclass(slots=True)
class StagedPlan:
    """How the containers of one pod live by the outcomes that it has *drawn*."""

    pod: KubeletPod
    base: PodPlan
    drawn: Sequence[Drawn]
    rng: random.Random
    seed: int
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def start_seconds(self) -> float:
        return self.base.start_seconds

    def container(self, container: KubeletContainer, role: Role, *, restarts: int) -> ContainerPlan:
        plan = self.base.container(container, role, restarts=restarts)
        for each in self.drawn:
            outcome = each.outcome
            is_spent = outcome.failures is not None and restarts >= outcome.failures
            if not is_spent and _is_about(each.match, container, role):
                plan = self._apply(outcome, plan, container.image)
        if role is Role.MAIN and self.pod.metadata.annotations:
            plan = told(self.pod.metadata.annotations, plan)
        return plan

    def _apply(self, outcome: Outcome, plan: ContainerPlan, image: str) -> ContainerPlan:
        """Return *plan* with what *outcome* says."""
        rng, changes = self.rng, dict[str, Any]()
        if outcome.pull is not None:
            changes["pull"] = self._pull(outcome, image)
        if outcome.create_delay is not None:
            changes["create_seconds"] = outcome.create_delay.draw(rng)
        if outcome.ready_delay == "never":
            changes["ready_seconds"] = None
        elif outcome.ready_delay is not None:
            changes["ready_seconds"] = outcome.ready_delay.draw(rng)
        ends = outcome.exit_code is not None or outcome.oom_killed or outcome.liveness_fails
        if outcome.run_duration == "forever":
            changes["run_seconds"] = None
        elif outcome.run_duration is not None:
            changes["run_seconds"] = outcome.run_duration.draw(rng)
        elif ends and plan.run_seconds is None:
            changes["run_seconds"] = DEFAULT_RUN_SECONDS
        if ends or outcome.run_duration is not None:
            changes["runs_command"] = False
        if ends:
            changes["exit_code"] = KILLED if outcome.exit_code is None else outcome.exit_code
            changes["reason"] = "OOMKilled" if outcome.oom_killed else ""
            changes["fails_liveness"] = outcome.liveness_fails
        if outcome.stop_duration == "never":
            changes["ignores_sigterm"] = True
        elif outcome.stop_duration == "hangs":
            changes["hangs"] = True
        elif outcome.stop_duration is not None:
            changes["stop_seconds"] = outcome.stop_duration.draw(rng)
        return replace(plan, **changes) if changes else plan

    def _pull(self, outcome: Outcome, image: str) -> Pull | None:
        pull = outcome.pull
        assert pull is not None
        size = pull.size.draw(random.Random(f"{self.seed} {image}"))
        rate = pull.rate.draw(self.rng)
        if pull.duration is not None:
            seconds = pull.duration.draw(self.rng)
        elif pull.error:
            seconds = FAILING_PULL_SECONDS
        else:
            seconds = size / rate if rate else 0.0
        return Pull(seconds, int(size), pull.error)


def plans_by(stages: Stages, rng: random.Random) -> Callable[[KubeletPod], PodPlan]:
    """Return what says how pods live by *stages*.

    What a pod draws depends on the seed and on its uid, not on the pods before it.
    """
    rules = rules_of(stages)
    if not rules:
        return plan_of
    seed = rng.getrandbits(64) if stages.seed is None else stages.seed

    def plan(pod: KubeletPod) -> PodPlan:
        own = random.Random(f"{seed} {pod.metadata.uid}")
        drawn = [Drawn(rule.match, _draw(rule, own)) for rule in rules if _matches(rule.match, pod)]
        base = plan_of(pod)
        if not drawn:
            return base
        return StagedPlan(pod, base, drawn, own, seed, _usage(drawn, pod, own))

    return plan


def _draw(rule: Rule, rng: random.Random) -> Outcome:
    if len(rule.outcomes) == 1:
        return rule.outcomes[0]
    weights = [outcome.weight for outcome in rule.outcomes]
    return rng.choices(rule.outcomes, weights)[0]


def _usage(drawn: Iterable[Drawn], pod: KubeletPod, rng: random.Random) -> dict[str, str]:
    """Return the annotations that say what *pod* uses, where it does not say so itself."""
    annotations = {}
    for each in drawn:
        for name, amount in each.outcome.usage.items():
            number, key = amount.draw(rng), f"{PREFIX}{name}"
            text = f"{round(number * 1000)}m" if name == CPU else str(round(number))
            if key not in pod.metadata.annotations:
                annotations[key] = text
    return annotations


def _matches(match: Match, pod: KubeletPod) -> bool:
    """Whether a rule is about *pod*, and one of its containers maybe."""
    metadata = pod.metadata
    if match.namespaces and not _any_like(metadata.namespace, match.namespaces):
        return False
    if match.label_selector is not None and not match.label_selector.matches(metadata.labels):
        return False
    if any(metadata.annotations.get(key) != text for key, text in match.annotations.items()):
        return False
    if match.owners:
        controller = metadata.controller
        return controller is not None and controller.kind in match.owners
    return True


def _is_about(match: Match, container: KubeletContainer, role: Role) -> bool:
    if ROLES[role] not in match.roles:
        return False
    if match.containers and not _any_like(container.name, match.containers):
        return False
    return not match.images or _any_like(container.image, match.images)


def _any_like(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
