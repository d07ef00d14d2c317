"""HorizontalPodAutoscalers: targets are as large as their metrics call for.

After ``pkg/controller/podautoscaler/horizontal.go`` of Kubernetes 1.36.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from berth.cluster.actions import Action, Get, Patch
from berth.cluster.controllers import replica_calculator, scaling_behavior
from berth.cluster.controllers.autoscaler_metrics import (
    MEASURED,
    NO_STATUS,
    Answers,
    Failure,
    Metric,
    evaluate,
)
from berth.cluster.controllers.claims import reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.scaling_behavior import At, History, Normalized, Target
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.registry import Registry
from berth.cluster.kinds.resource_metrics import POD_METRICS
from berth.cluster.resources import Object
from berth.kube.client.errors import ApiError
from berth.runtime.clock import Clock, rfc3339

AUTOSCALERS: Final = find("autoscaling", "v2", "horizontalpodautoscalers")
PODS: Final = find("", "v1", "pods")
INTERVAL: Final = 15.0
"""Seconds between two looks at a target, as upstream."""

GOT_SCALE: Final = (
    "SucceededGetScale",
    "the HPA controller was able to get the target's current scale",
)
DISABLED: Final = (
    "ScalingDisabled",
    "scaling is disabled since the replica count of the target is zero",
)


@dataclass(slots=True)
class _Memory:
    """What is known of an autoscaler."""

    answers: Answers = field(default_factory=Answers)
    history: History = field(default_factory=History)
    rescaling: tuple[int, int] | None = None
    """The numbers of replicas before and after a change that is under way."""
    rescale_error: str = ""
    """Why the last change failed, until that is reported."""


class HorizontalPodAutoscalerController:
    """Decides the size of targets. Reads a table; asks for scales, pods and their metrics."""

    name = "horizontalpodautoscaler"

    def __init__(
        self,
        autoscalers: Table[ResourceView],
        registry: Registry,
        *,
        clock: Clock,
        recorder: EventRecorder,
    ) -> None:
        self._autoscalers = autoscalers
        self._registry = registry
        self._clock = clock
        self._recorder = recorder
        self._memories: dict[str, _Memory] = {}

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def autoscaler_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
                self._memories.pop(old.metadata.key, None)
            if new is not None and (old is None or old.spec != new.spec):
                enqueue(new.metadata.key)

        self._autoscalers.listen(autoscaler_changed)

    def plan(self, key: str) -> Plan:
        """Ask what is to be known of the target, or use the answers."""
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None or autoscaler.metadata.deletion_timestamp is not None:
            return NOTHING
        memory = self._memories.setdefault(key, _Memory())
        answers = memory.answers
        path = self._scale_path(autoscaler)
        if not path:
            target = autoscaler.spec.get("scaleTargetRef") or {}
            group = (target.get("apiVersion") or "").rpartition("/")[0]
            missing = f'no matches for kind "{target.get("kind")}" in group "{group}"'
            return self._without_scale(
                autoscaler, f"unable to determine resource for scale target reference: {missing}"
            )
        if memory.rescale_error:
            error, memory.rescale_error = memory.rescale_error, ""
            message = f"the HPA controller was unable to update the target scale: {error}"
            unable = _condition("AbleToScale", "False", "FailedUpdateScale", message)
            return Plan(self._report(autoscaler, [unable], {}), again=INTERVAL)
        if answers.scale_error:
            memory.answers = Answers()
            return self._without_scale(autoscaler, answers.scale_error)
        if answers.replicas is None:
            return Plan([Get(path)], again=0.0)
        questions = self._questions(autoscaler, answers)
        if questions:
            return Plan(questions, again=0.0, is_independent=True)
        memory.answers = Answers()
        return self._scaled(autoscaler, path, answers, memory)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Keep the answers for the next plan, which follows at once; tell of new sizes."""
        memory = self._memories.get(key)
        if memory is None:  # it was deleted meanwhile
            return
        answers, error = memory.answers, outcome.error
        match outcome.action:
            case Get(path) if path.endswith("/scale"):
                answers.scale_error = "" if error is None else str(error)
                if error is None:
                    scale = msgspec.json.decode(outcome.answer)
                    answers.replicas = int((scale.get("spec") or {}).get("replicas") or 0)
                    answers.selector = (scale.get("status") or {}).get("selector") or ""
            case Get(path) if path.startswith(POD_METRICS.path):
                answers.metrics_error = "" if error is None else str(error)
                answers.metrics = []
                if error is None:
                    answers.metrics = replica_calculator.decode_metrics(outcome.answer).items
            case Get():
                answers.pods_error = "" if error is None else str(error)
                answers.pods = []
                if error is None:
                    answers.pods = replica_calculator.decode_pods(outcome.answer).items
            case Patch(path) if path.endswith("/scale") and not outcome.skipped:
                self._tell_of_size(key, outcome.action, error)
                memory.rescale_error = "" if error is None else str(error)
                if error is None and memory.rescaling is not None:
                    before, after = memory.rescaling
                    change = At(self._clock.monotonic(), after - before)
                    memory.history.changes.append(change)
                memory.rescaling = None

    def _questions(self, autoscaler: ResourceView, answers: Answers) -> list[Action]:
        """Return what else is to be known: pods and what they use, if any metric is about that."""
        measures = any(
            metric.get("type") in MEASURED for metric in autoscaler.spec.get("metrics") or ()
        )
        if not measures or not answers.selector or _rescale_reason(autoscaler, answers) is not None:
            return []
        namespace = autoscaler.metadata.namespace
        params = {"labelSelector": answers.selector}
        questions: list[Action] = []
        if answers.pods is None:
            questions.append(Get(PODS.collection_path(namespace), params))
        if answers.metrics is None:
            questions.append(Get(POD_METRICS.collection_path(namespace), params))
        return questions

    def _scale_path(self, autoscaler: ResourceView) -> str:
        """Return the URL of the target's scale; empty: no such kind has one."""
        target = autoscaler.spec.get("scaleTargetRef") or {}
        group = (target.get("apiVersion") or "").rpartition("/")[0]
        for resource in self._registry:
            found = (resource.group, resource.kind) == (group, target.get("kind"))
            if found and resource.namespaced and "scale" in resource.subresources:
                name = target.get("name") or ""
                return f"{resource.path_of(autoscaler.metadata.namespace, name)}/scale"
        return ""

    def _without_scale(self, autoscaler: ResourceView, error: str) -> Plan:
        message = f"the HPA controller was unable to get the target's current scale: {error}"
        self._warn(autoscaler, "FailedGetScale", error)
        condition = _condition("AbleToScale", "False", "FailedGetScale", message)
        return Plan(self._report(autoscaler, [condition], {}), again=INTERVAL)

    def _scaled(
        self, autoscaler: ResourceView, path: str, answers: Answers, memory: _Memory
    ) -> Plan:
        """Return what is done about a target whose scale is known."""
        current = answers.replicas or 0
        target = _target(autoscaler, current)
        able = _condition("AbleToScale", "True", *GOT_SCALE)
        if current == 0 and target.minimum != 0:
            off = _condition("ScalingActive", "False", *DISABLED)
            counts = {"currentReplicas": 0, "desiredReplicas": 0, "currentMetrics": None}
            return Plan(self._report(autoscaler, [able, off], counts), again=INTERVAL)
        reason = _rescale_reason(autoscaler, answers)
        if reason:
            desired = max(min(current, target.maximum), target.minimum)
            return self._rescale(autoscaler, path, memory, current, desired, reason, [], None)
        if not autoscaler.spec.get("metrics"):
            counts = {"currentReplicas": current}
            return Plan(self._report(autoscaler, [able], counts), again=INTERVAL)
        if not answers.selector:
            return self._without_selector(autoscaler, able, current)
        return self._measured(autoscaler, path, answers, memory, target)

    def _measured(
        self,
        autoscaler: ResourceView,
        path: str,
        answers: Answers,
        memory: _Memory,
        target: Target,
    ) -> Plan:
        """Return what is done about a target that metrics decide about."""
        able = _condition("AbleToScale", "True", *GOT_SCALE)
        now, behavior = self._clock.now(), autoscaler.spec.get("behavior")
        tolerances = scaling_behavior.tolerances_of(behavior)
        found = [
            evaluate(metric, autoscaler.metadata.namespace, answers, tolerances, now=now)
            for metric in autoscaler.spec["metrics"]
        ]
        failures = [each for each in found if isinstance(each, Failure)]
        metrics = [each for each in found if isinstance(each, Metric)]
        statuses = [each.status if isinstance(each, Metric) else NO_STATUS for each in found]
        for failure in failures:
            self._warn(autoscaler, failure.reason, failure.message)
        best = max(metrics, key=lambda each: each.replicas, default=None)
        if best is None or (failures and best.replicas < target.current):
            first = failures[0]
            count = f"{len(failures)} invalid out of {len(found)}"
            summary = f"invalid metrics ({count}), first error is: {first.summary}"
            self._warn(autoscaler, "FailedComputeMetricsReplicas", summary)
            message = f"the HPA was unable to compute the replica count: {first.message}"
            off = _condition("ScalingActive", "False", first.reason, message)
            counts: Object = {"currentReplicas": target.current, "currentMetrics": statuses}
            return Plan(self._report(autoscaler, [able, off], counts), again=INTERVAL)
        normalized = scaling_behavior.normalize(
            best.replicas, target, behavior, memory.history, now=self._clock.monotonic()
        )
        conditions = _conditions(best, normalized)
        desired = normalized.replicas
        if desired != target.current:
            above = best.replicas > target.current
            reason = f"{best.name} above target" if above else "All metrics below target"
            return self._rescale(
                autoscaler, path, memory, target.current, desired, reason, conditions, statuses
            )
        counts = {
            "currentReplicas": target.current,
            "desiredReplicas": target.current,
            "currentMetrics": statuses,
        }
        return Plan(self._report(autoscaler, conditions, counts), again=INTERVAL)

    def _rescale(
        self,
        autoscaler: ResourceView,
        path: str,
        memory: _Memory,
        current: int,
        desired: int,
        reason: str,
        conditions: Sequence[Object],
        statuses: Sequence[Object] | None,
    ) -> Plan:
        memory.rescaling = (current, desired)
        message = f"the HPA controller was able to update the target scale to {desired}"
        done = _condition("AbleToScale", "True", "SucceededRescale", message)
        others = [condition for condition in conditions if condition["type"] != "AbleToScale"]
        counts: Object = {
            "currentReplicas": current,
            "desiredReplicas": desired,
            "currentMetrics": statuses,
            "lastScaleTime": rfc3339(self._clock.now()),
        }
        rescale = Patch(path, {"spec": {"replicas": desired}}, note=reason)
        return Plan([rescale, *self._report(autoscaler, [done, *others], counts)], again=INTERVAL)

    def _without_selector(self, autoscaler: ResourceView, able: Object, current: int) -> Plan:
        self._warn(autoscaler, "SelectorRequired", "selector is required")
        message = "the HPA target's scale is missing a selector"
        off = _condition("ScalingActive", "False", "InvalidSelector", message)
        self._warn(autoscaler, "FailedComputeMetricsReplicas", "selector is required")
        counts = {"currentReplicas": current}
        return Plan(self._report(autoscaler, [able, off], counts), again=INTERVAL)

    def _report(
        self, autoscaler: ResourceView, conditions: Sequence[Object], counts: Object
    ) -> list[Action]:
        """Return the patch of the status, if it is to change."""
        old = autoscaler.status
        stamp = rfc3339(self._clock.now())
        merged: dict[str, Object] = {each["type"]: each for each in old.get("conditions") or ()}
        for condition in conditions:
            known = merged.get(condition["type"]) or {}
            same = known.get("status") == condition["status"]
            since = known.get("lastTransitionTime") if same else stamp
            merged[condition["type"]] = {**condition, "lastTransitionTime": since}
        generation = autoscaler.metadata.generation
        status: Object = {
            "conditions": list(merged.values()),
            "desiredReplicas": old.get("desiredReplicas") or 0,
            **({"observedGeneration": generation} if generation else {}),
            **counts,
        }
        changed = {key: value for key, value in status.items() if old.get(key) != value}
        if not changed:
            return []
        meta = autoscaler.metadata
        path = f"{AUTOSCALERS.path_of(meta.namespace, meta.name)}/status"
        return [Patch(path, {"metadata": {"uid": meta.uid}, "status": changed})]

    def _warn(self, autoscaler: ResourceView, reason: str, message: str) -> None:
        about = reference_to(autoscaler, AUTOSCALERS)
        self._recorder.event(about, type="Warning", reason=reason, message=message)

    def _tell_of_size(self, key: str, rescale: Patch, error: ApiError | None) -> None:
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None:
            return
        text = f"New size: {rescale.body['spec']['replicas']}; reason: {rescale.note}"
        if error is not None:
            self._warn(autoscaler, "FailedRescale", f"{text}; error: {error}")
        else:
            about = reference_to(autoscaler, AUTOSCALERS)
            self._recorder.event(about, reason="SuccessfulRescale", message=text)


def new_controller(context: ControllerContext) -> HorizontalPodAutoscalerController:
    return HorizontalPodAutoscalerController(
        context.table("horizontalpodautoscalers.autoscaling", ResourceView),
        context.registry,
        clock=context.clock,
        recorder=context.recorder("horizontal-pod-autoscaler"),
    )


def _condition(type_: str, status: str, reason: str, message: str) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _conditions(best: Metric, normalized: Normalized) -> list[Object]:
    message = f"the HPA was able to successfully calculate a replica count from {best.name}"
    return [
        _condition("AbleToScale", "True", *normalized.able),
        _condition("ScalingActive", "True", "ValidMetricFound", message),
        _condition("ScalingLimited", str(normalized.is_limited), *normalized.limited),
    ]


def _target(autoscaler: ResourceView, current: int) -> Target:
    spec = autoscaler.spec
    least = spec.get("minReplicas")
    return Target(current, 1 if least is None else int(least), int(spec.get("maxReplicas") or 1))


def _rescale_reason(autoscaler: ResourceView, answers: Answers) -> str | None:
    """Return why the size is decided without metrics, "" if it stays; None: metrics decide."""
    target = _target(autoscaler, answers.replicas or 0)
    if target.current == 0 and target.minimum != 0:
        return ""
    if target.current > target.maximum:
        return "Current number of replicas above Spec.MaxReplicas"
    if target.current < target.minimum:
        return "Current number of replicas below Spec.MinReplicas"
    return None
