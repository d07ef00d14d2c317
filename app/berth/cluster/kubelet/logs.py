"""Logs of hollow containers: a few lines, made of what the pod says of itself."""

from typing import NamedTuple

from berth.cluster.resources import Object


class Line(NamedTuple):
    """A line of a log."""

    time: str
    """RFC 3339."""
    text: str


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
