"""Writes to PodGroups (spec G7.1)."""

import msgspec

from berth.kube.objects.pod_group import API_VERSION, PodGroup, PodGroupCondition


def path_of(group: PodGroup) -> str:
    """Return the path of a group of Kubernetes on the API server, in the version it was read in."""
    meta, version = group.metadata, group.api_version or API_VERSION
    return f"/apis/{version}/namespaces/{meta.namespace}/podgroups/{meta.name}"


def condition_patch(condition: PodGroupCondition) -> bytes:
    """Return the strategic merge patch that sets *condition*; the message is sent though empty."""
    fields = {"message": "", **msgspec.to_builtins(condition)}
    return msgspec.json.encode({"status": {"conditions": [fields]}})
