"""HorizontalPodAutoscalers: targets are kept within their bounds.

There are no metrics here: no metrics server and no adapter. So all that the real controller decides
without them is decided, and of the rest it is said, in its words, what is missing.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from berth.client.errors import ApiError
from berth.clock import Clock, rfc3339
from berth.cluster.actions import Action, Get, Patch
from berth.cluster.controllers.claims import reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object

AUTOSCALERS: Final = find("autoscaling", "v2", "horizontalpodautoscalers")
INTERVAL: Final = 15.0
"""Seconds between two looks at a target, as upstream."""

NO_RESOURCE_METRICS: Final = (
    "unable to fetch metrics from resource metrics API: "
    "the server could not find the requested resource (get pods.metrics.k8s.io)"
)
NO_CUSTOM_METRICS: Final = (
    "unable to fetch metrics from custom metrics API: "
    "no custom metrics API (custom.metrics.k8s.io) registered"
)
NO_EXTERNAL_METRICS: Final = (
    "unable to fetch metrics from external metrics API: "
    "no external metrics API (external.metrics.k8s.io) registered"
)


class Scale(NamedTuple):
    """What was asked of the target, and answered."""

    replicas: int = 0
    error: str = ""


class Failure(NamedTuple):
    """Why a metric has no value."""

    reason: str
    message: str
    kind: str
    """How the metric is called in the summary of all that failed."""


class HorizontalPodAutoscalerController:
    """Decides the size of targets. Reads a table, and asks for the scale of targets."""

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
        self._scales: dict[str, Scale] = {}
        """By key: the answer about the target, until it is used."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def autoscaler_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            if new is not None and (old is None or old.spec != new.spec):
                enqueue(new.metadata.key)

        self._autoscalers.listen(autoscaler_changed)

    def plan(self, key: str) -> Plan:
        """Ask for the scale of the target, or use the answer."""
        autoscaler = self._autoscalers.get(key)
        scale = self._scales.pop(key, None)
        if autoscaler is None or autoscaler.metadata.deletion_timestamp is not None:
            return NOTHING
        path = self._scale_path(autoscaler)
        if not path:
            target = autoscaler.spec.get("scaleTargetRef") or {}
            group = (target.get("apiVersion") or "").rpartition("/")[0]
            missing = f'no matches for kind "{target.get("kind")}" in group "{group}"'
            scale = Scale(
                error=f"unable to determine resource for scale target reference: {missing}"
            )
        if scale is None:
            return Plan([Get(path)], again=0.0)
        if scale.error:
            return self._without_scale(autoscaler, scale.error)
        return self._scaled(autoscaler, path, scale.replicas)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Keep the answer for the next plan, which follows at once; tell of new sizes."""
        match outcome.action:
            case Get() if outcome.error is None:
                scale = msgspec.json.decode(outcome.answer)
                self._scales[key] = Scale(int((scale.get("spec") or {}).get("replicas") or 0))
            case Get():
                self._scales[key] = Scale(error=str(outcome.error))
            case Patch(path) if path.endswith("/scale"):
                self._tell_of_size(key, outcome.action, outcome.error)

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

    def _scaled(self, autoscaler: ResourceView, path: str, current: int) -> Plan:
        """Return what is done about a target of *current* replicas."""
        spec = autoscaler.spec
        least, most = spec.get("minReplicas"), int(spec.get("maxReplicas") or 1)
        least = 1 if least is None else int(least)
        able = _condition(
            "AbleToScale",
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        if current == 0 and least != 0:
            message = "scaling is disabled since the replica count of the target is zero"
            off = _condition("ScalingActive", "False", "ScalingDisabled", message)
            counts = {"currentReplicas": 0, "desiredReplicas": 0}
            return Plan(self._report(autoscaler, [able, off], counts), again=INTERVAL)
        desired = max(min(current, most), least)
        if desired != current:
            bound = "above Spec.MaxReplicas" if desired < current else "below Spec.MinReplicas"
            message = f"the HPA controller was able to update the target scale to {desired}"
            done = _condition("AbleToScale", "True", "SucceededRescale", message)
            note = f"Current number of replicas {bound}"
            resized: Object = {
                "currentReplicas": current,
                "desiredReplicas": desired,
                "lastScaleTime": rfc3339(self._clock.now()),
            }
            rescale = Patch(path, {"spec": {"replicas": desired}}, note=note)
            return Plan([rescale, *self._report(autoscaler, [done], resized)], again=INTERVAL)
        failures = list(_failures(autoscaler))
        if not failures:
            return Plan(self._report(autoscaler, [able], {"currentReplicas": current}), INTERVAL)
        for failure in failures:
            self._warn(autoscaler, failure.reason, failure.message)
        first = failures[0]
        count = f"{len(failures)} invalid out of {len(failures)}"
        summary = f"invalid metrics ({count}), first error is: failed to get {first.kind}"
        self._warn(autoscaler, "FailedComputeMetricsReplicas", f"{summary}: {first.message}")
        message = f"the HPA was unable to compute the replica count: {first.message}"
        off = _condition("ScalingActive", "False", first.reason, message)
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


def _failures(autoscaler: ResourceView) -> Iterator[Failure]:
    """Yield why each metric has no value."""
    for metric in autoscaler.spec.get("metrics") or ():
        source = metric.get("type") or ""
        about: Object = metric.get(source[:1].lower() + source[1:]) or {}
        match source:
            case "Resource" | "ContainerResource":
                name, target = about.get("name"), about.get("target") or {}
                what = "usage" if target.get("type") == "AverageValue" else "utilization"
                message = (
                    f"failed to get {name} {what}: unable to get metrics for resource {name}: "
                    f"{NO_RESOURCE_METRICS}"
                )
                word = "container resource" if source == "ContainerResource" else "resource"
                kind = f"{name} {word} metric value"
            case "External":
                name = (about.get("metric") or {}).get("name")
                place = f"{autoscaler.metadata.namespace}/{name}/nil"
                message = f"unable to get external metric {place}: {NO_EXTERNAL_METRICS}"
                kind = f"{name} external metric value"
            case "Pods" | "Object":
                name = (about.get("metric") or {}).get("name")
                message = f"unable to get metric {name}: {NO_CUSTOM_METRICS}"
                kind = f"{source.lower()} metric value"
            case _:
                continue
        yield Failure(f"FailedGet{source}Metric", message, kind)
