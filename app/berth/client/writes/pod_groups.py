"""What the scheduler writes to PodGroups (spec G7.1)."""

import msgspec

from berth.objects.pod_group import API, PodGroup, PodGroupCondition


def path_of(group: PodGroup) -> str:
    """Return the path of a group on the API server."""
    return f"{API}/namespaces/{group.metadata.namespace}/podgroups/{group.metadata.name}"


def condition_patch(condition: PodGroupCondition) -> bytes:
    """Return the strategic merge patch that sets *condition*; the message is sent though empty."""
    fields = {"message": "", **msgspec.to_builtins(condition)}
    return msgspec.json.encode({"status": {"conditions": [fields]}})
