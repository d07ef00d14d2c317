"""What is in a render, such as ``helm template`` prints: who makes pods, what has a part in where
they go, and what does not matter.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from berth.insight.whatif.admission import Admission
from berth.insight.whatif.daemons import DAEMON_SET
from berth.insight.whatif.manifests import QuestionError, companion, priority_class
from berth.insight.whatif.question import Replicas
from berth.kube import manifests
from berth.kube.objects.cluster import PriorityClass
from berth.kube.objects.meta import KubeStruct
from berth.scheduler.framework.listers import KINDS

_WORKLOADS: Final[Mapping[str, str]] = {
    "CronJob": "batch",
    DAEMON_SET: "apps",
    "Deployment": "apps",
    "Job": "batch",
    "Pod": "",
    "PodTemplate": "",
    "ReplicaSet": "apps",
    "ReplicationController": "",
    "StatefulSet": "apps",
}
"""What has a template of pods, with the group of its API: a Job may also be somebody else's."""

_COMPANIONS: Final = KINDS.keys() - _WORKLOADS.keys() - {"Node"}
PRIORITY_CLASS: Final = "PriorityClass"
_HOOK: Final = "helm.sh/hook"
_TEST: Final = "test"
"""Hooks that come with no install or upgrade: ``test``, once ``test-success``."""
_MOST_NAMED: Final = 20


class Workload(NamedTuple):
    """Who makes pods."""

    at: str
    """The name of the field."""
    manifest: Mapping[str, Any]
    replicas: int | None
    """Instead of what the manifest says."""


@dataclass(slots=True)
class Render:
    """The templates of a question, sorted."""

    workloads: list[Workload] = field(default_factory=list)
    copies: list[tuple[str, Replicas]] = field(default_factory=list)
    """What is like a pod of the snapshot, with the name of the field."""
    objects: list[KubeStruct] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def admission(self) -> Admission:
        """Return what becomes of pods where nothing but the PriorityClasses is known."""
        admission = Admission()
        for class_ in self.priority_classes:
            admission.add_class(class_)
        return admission


def sort_out(templates: Iterable[Replicas]) -> Render:
    """Sort what comes as templates; what makes no pods is noted.

    Raises ManifestError for text that cannot be read, and QuestionError for an object without a
    kind, and if there is nothing but such that do nothing here.
    """
    render, taken, skipped = Render(), Counter[str](), Counter[str]()
    for at, manifest, replicas in _written(templates, render.copies):
        kind = manifest.get("kind")
        if not isinstance(kind, str) or not kind:
            raise QuestionError(f"{at}.kind: {kind!r}: needed")
        group = _group(manifest)
        if _is_test(manifest):
            skipped[f"{kind} of a helm test"] += 1
        elif group in (None, _WORKLOADS.get(kind)) and kind in _WORKLOADS:
            render.workloads.append(Workload(at, manifest, replicas))
        elif kind == PRIORITY_CLASS:
            render.priority_classes.append(priority_class(manifest, at=at))
            taken[kind] += 1
        elif kind in _COMPANIONS and _is_kubernetes(group):
            render.objects.append(companion(manifest, at=at))
            taken[kind] += 1
        else:
            skipped[kind] += 1
    if skipped and not (render.workloads or render.copies or taken):
        raise QuestionError(f"templates: none of them creates pods: {_counted(skipped)}")
    if taken:
        render.notes.append(f"taken into account: {_counted(taken)}")
    if skipped:
        render.notes.append(f"ignored, because they create no pods: {_counted(skipped)}")
    return render


def _written(
    templates: Iterable[Replicas], copies: list[tuple[str, Replicas]]
) -> Iterator[Workload]:
    """Yield what is written of *templates*, object by object; the others join *copies*."""
    for i, template in enumerate(templates):
        if template.manifest is not None:
            yield Workload(f"templates[{i}].manifest", template.manifest, template.replicas)
        elif template.like:
            copies.append((f"templates[{i}]", template))
        else:
            at = f"templates[{i}].text"
            for j, manifest in enumerate(manifests.parse(template.text, source=at)):
                # As many of everything but what has a pod for each node anyway.
                number = None if manifest["kind"] == DAEMON_SET else template.replicas
                yield Workload(f"{at}[{j}]", manifest, number)


def _group(manifest: Mapping[str, Any]) -> str | None:
    """Return the group of an object's API, empty for the core; None if it does not say."""
    version = manifest.get("apiVersion")
    return version.rpartition("/")[0] if isinstance(version, str) and version else None


def _is_kubernetes(group: str | None) -> bool:
    return not group or "." not in group or group.endswith(".k8s.io")


def _is_test(manifest: Mapping[str, Any]) -> bool:
    meta = manifest.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, Mapping) else None
    hooks = annotations.get(_HOOK) if isinstance(annotations, Mapping) else None
    if not isinstance(hooks, str):
        return False
    return all(hook.strip().startswith(_TEST) for hook in hooks.split(","))


def _counted(kinds: Counter[str]) -> str:
    named = [f"{count} {kind:.63}" for kind, count in sorted(kinds.items())[:_MOST_NAMED]]
    return ", ".join(named) + (", ..." if len(kinds) > _MOST_NAMED else "")
