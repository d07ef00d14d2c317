"""Logs of containers of which nobody knows what they run: made of what the pod says of itself."""

from berth.cluster.kubelet.processes.process import Line
from berth.cluster.resources import Object


def lines_of(pod: Object, name: str, status: Object) -> list[Line]:
    """Return what the container *name* has logged so far; *status* is its ContainerStatus."""
    state = status.get("state") or {}
    running, terminated = state.get("running"), state.get("terminated")
    since = running or terminated
    if since is None:
        return []
    node = pod["spec"].get("nodeName", "")
    metadata = pod["metadata"]
    started = since.get("startedAt") or metadata["creationTimestamp"]
    lines = [
        Line(started, f"Started image {status.get('image', '')} on hollow node {node}"),
        Line(started, f"Container {name} of pod {metadata['namespace']}/{metadata['name']} "
                      "runs no process; these lines are all that it logs"),
    ]  # fmt: skip
    if terminated is not None:
        ended = terminated.get("finishedAt") or started
        lines.append(Line(ended, f"Container {name} ended with exit code {terminated['exitCode']}"))
    return lines
