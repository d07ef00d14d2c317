"""Small clusters, and questions about them."""

import json
from typing import Any

from berth.insight.whatif.answer import Answer
from berth.insight.whatif.engine import answer
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot, decode
from berth.kube.objects.meta import KubeStruct
from berth_plugins.registry import IN_TREE
from tests.builders import to_json

TIME = "2026-01-01T00:00:00Z"


def snapshot(*objects: KubeStruct, config: dict[str, Any] | None = None) -> Snapshot:
    by_kind: dict[str, list[KubeStruct]] = {}
    for obj in objects:
        by_kind.setdefault(type(obj).__name__, []).append(obj)
    return Snapshot(TIME, config, by_kind)


def reread(taken: Snapshot) -> Snapshot:
    """Return *taken* as it comes out of a file."""
    return decode(b"".join(taken.encode()), source="file")


def ask(taken: Snapshot, **question: Any) -> Answer:
    """Ask what *question* says, in the form that JSON has."""
    return answer(Question.model_validate_json(json.dumps(question)), taken, IN_TREE)


def manifest(thing: KubeStruct) -> dict[str, Any]:
    """Return *thing* as somebody would write it."""
    written: dict[str, Any] = json.loads(to_json(thing))
    return written


def deployment(
    name: str = "web", *, cpu: str = "1", replicas: int = 1, kind: str = "Deployment", **spec: Any
) -> dict[str, Any]:
    """A workload of pods that request *cpu*; *spec* is more of the pods' spec."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], **spec},
            },
        },
    }
