"""The status ConfigMap, field by field as cluster-autoscaler writes it."""

import dataclasses

import yaml

from berth.tools.autoscaler.backoff import Backoff
from berth.tools.autoscaler.status import StatusWriter, config_map, initializing
from tests.tools.autoscaler.planning import NOW, group, member, states, view


def test_the_status_of_a_cluster() -> None:
    seen = view(member("a"), member("b"), member("c", of="full"))
    general, full = states(seen, group(), group("full", max_size=1), upcoming={"general": 2})
    resting = Backoff(300.0, until=300.0, since=0.0, code="outOfResource", message="none left")
    full = dataclasses.replace(full, backoff=resting)
    writer = StatusWriter()

    text = writer.text(
        seen, [general, full], unneeded=["a"], being_deleted=["b"], pending=True, now=NOW
    )

    found = yaml.safe_load(text)
    times = {"lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    assert found["time"] == "2026-01-01 00:00:00 +0000 UTC"
    assert found["autoscalerStatus"] == "Running"
    times = {key: yaml.safe_load(value) for key, value in times.items()} and times
    assert found["clusterWide"]["health"]["nodeCounts"]["registered"] == {
        "total": 3,
        "ready": 2,
        "notStarted": 0,
        "beingDeleted": 1,
        "unready": {"total": 0, "resourceUnready": 0},
    }
    assert found["clusterWide"]["scaleUp"] == {"status": "InProgress", **times}
    first, second = found["nodeGroups"]
    assert first["name"] == "general"
    assert first["health"] == {
        "status": "Healthy",
        "nodeCounts": {
            "registered": {
                "total": 2,
                "ready": 1,
                "notStarted": 0,
                "beingDeleted": 1,
                "unready": {"total": 0, "resourceUnready": 0},
            },
            "longUnregistered": 0,
            "unregistered": 2,
        },
        "cloudProviderTarget": 4,
        "minSize": 0,
        "maxSize": 5,
        **times,
    }
    assert first["scaleDown"] == {"status": "CandidatesPresent", "candidates": 1, **times}
    assert second["scaleUp"] == {
        "status": "Backoff",
        "backoffInfo": {"errorCode": "outOfResource", "errorMessage": "none left"},
        **times,
    }
    assert second["scaleDown"] == {"status": "NoCandidates", **times}


def test_a_transition_is_when_the_status_changed() -> None:
    writer, seen = StatusWriter(), view(member("a"))
    groups = states(seen, group())

    def scale_down(now: float, *unneeded: str) -> dict[str, str]:
        text = writer.text(
            seen, groups, unneeded=unneeded, being_deleted=(), pending=False, now=now
        )
        found: dict[str, str] = yaml.safe_load(text)["nodeGroups"][0]["scaleDown"]
        return found

    scale_down(NOW)
    assert scale_down(NOW + 10)["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert scale_down(NOW + 20, "a")["lastTransitionTime"] == "2026-01-01T00:00:20Z"
    assert scale_down(NOW + 30, "a")["lastProbeTime"] == "2026-01-01T00:00:30Z"


def test_the_config_map() -> None:
    made = config_map(initializing(NOW + 0.25), now=NOW + 0.25)
    assert made["metadata"] == {
        "name": "cluster-autoscaler-status",
        "namespace": "kube-system",
        "annotations": {
            "cluster-autoscaler.kubernetes.io/last-updated": "2026-01-01 00:00:00.25 +0000 UTC"
        },
    }
    assert yaml.safe_load(made["data"]["status"]) == {
        "time": "2026-01-01 00:00:00.25 +0000 UTC",
        "autoscalerStatus": "Initializing",
    }
