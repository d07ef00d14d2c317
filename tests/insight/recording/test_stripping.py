"""What may be in a recording, and what may not."""

import json
from pathlib import Path
from typing import Any

import pytest

from berth.insight.recording import lines
from berth.insight.recording.recorder import Recorder
from berth.kube.objects.storage import SELECTED_NODE
from berth.scheduler.framework.exports import DECIDING_ANNOTATIONS, exported
from berth.scheduler.framework.kind import PODS
from berth.scheduler.framework.listers import KINDS
from tests.harness import Harness
from tests.insight.recording.world import config

SECRET = "do-not-tell"

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "1", "annotations": {"a": SECRET}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "command": [SECRET],
                "args": [SECRET],
                "env": [{"name": "TOKEN", "value": SECRET}],
                "envFrom": [{"secretRef": {"name": SECRET}}],
            }
        ],
        "imagePullSecrets": [{"name": SECRET}],
    },
}
CLAIM = {
    "metadata": {
        "name": "c",
        "namespace": "default",
        "uid": "2",
        "annotations": {"a": SECRET, SELECTED_NODE: "n1"},
        "managedFields": [{"manager": SECRET}],
    },
    "spec": {"storageClassName": "local", "dataSource": {"name": SECRET}},
}


@pytest.mark.parametrize(
    ("kind", "manifest"),
    [(PODS, POD), (KINDS["PersistentVolumeClaim"], CLAIM)],
    ids=["pod", "claim that is kept as it came"],
)
def test_no_secret_is_recorded(kind: Any, manifest: dict[str, Any]) -> None:
    written: list[bytes] = []
    harness = Harness(journal=lambda clock: Recorder(written.append, clock=clock))
    obj = kind.decode(json.dumps(manifest).encode())

    harness.handlers[kind.type].on_add(obj)
    harness.handlers[kind.type].on_update(obj, obj)
    harness.handlers[kind.type].on_delete(obj)

    assert [type(lines.decode(line)) for line in written[1:]] == [
        lines.Added,
        lines.Updated,
        lines.Deleted,
    ]
    assert SECRET not in b"".join(written).decode()


def test_annotations_that_decide_are_kept() -> None:
    claim = KINDS["PersistentVolumeClaim"]
    obj = claim.decode(json.dumps(CLAIM).encode())
    assert exported(claim, obj).metadata.annotations == {SELECTED_NODE: "n1"}
    assert SELECTED_NODE in DECIDING_ANNOTATIONS
    assert obj.metadata.annotations["a"] == SECRET, "the object itself stays as it is"


def test_the_configuration_is_recorded_without_keys() -> None:
    written: list[bytes] = []
    recorder = Recorder(written.append, clock=Harness().clock)
    extender = {
        "urlPrefix": f"https://user:{SECRET}@example.com",
        "filterVerb": "filter",
        "enableHTTPS": True,
        "tlsConfig": {"keyData": "ZG8tbm90LXRlbGw=", "certData": "ZG8tbm90LXRlbGw="},
    }

    recorder.reconfigured(config(extenders=[extender]))

    (line,) = written
    assert SECRET.encode() not in line
    assert b"ZG8tbm90LXRlbGw=" not in line
    told = lines.decode(line)
    assert isinstance(told, lines.Configured)
    (known,) = told.config["extenders"]
    assert (known["urlPrefix"], known["tlsConfig"]) == ("https://example.com", None)


def test_the_annotations_that_are_kept_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text("utf-8")
    assert {each for each in DECIDING_ANNOTATIONS if f"`{each}`" not in page} == set()
