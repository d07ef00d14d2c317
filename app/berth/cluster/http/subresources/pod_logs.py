"""``pods/log``: what a container has logged."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

from berth.cluster import errors, options
from berth.cluster.http.call import Call
from berth.cluster.http.requests import Answer
from berth.cluster.http.subresources.containers import container_of, status_of
from berth.cluster.http.subresources.kubelets import kubelet_of, unreachable
from berth.cluster.kinds.builtin import find
from berth.cluster.kubelet.logs import lines_of
from berth.cluster.kubelet.processes.process import Line, Log
from berth.cluster.options import Query
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.storage.log import ExpiredError
from berth.cluster.storage.store import NotFoundError
from berth.cluster.times import seconds_of
from berth.kube import field_errors

TEXT: Final = "text/plain"
PODS: Final = find("", "v1", "pods")
OPTIONS: Final = ResourceType(
    group="",
    version="v1",
    kind="PodLogOptions",
    plural="podlogoptions",
    singular="podlogoptions",
    namespaced=True,
    schema=builtin.meta("Status"),
)
"""What refusals call them; they come in the query."""

BATCH: Final = 1_000
"""Changes of pods that are skipped at a time."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """PodLogOptions."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float | None = None
    """Unix seconds."""
    tail_lines: int | None = None
    limit_bytes: int | None = None


async def logs(call: Call) -> ASGIApp:
    """Answer with the lines as text; with ``follow`` until the container or the pod is gone."""
    asked = log_options(call.request.query, call.target.name, now=call.services.clock.now())
    pod = _pod(call)
    container = container_of(pod, asked.container)
    node = pod["spec"].get("nodeName")
    if not node:
        return Response(status_code=204)
    kubelet = kubelet_of(call.services.store, node)
    if not kubelet.is_hollow:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        url = f"https://{kubelet.address}/containerLogs/{namespace}/{name}/{container}"
        raise unreachable(f'Get "{url}": {kubelet.why}')
    log = next(
        (
            known
            for each in call.services.containers
            if (known := each.log(pod, container, previous=asked.previous)) is not None
        ),
        None,
    )
    if log is not None:
        text = _written(_selected(log.lines, asked), asked)
        if asked.follow and asked.limit_bytes is None and not log.is_ended:
            return StreamingResponse(_following(call, log, asked, text), media_type=TEXT)
        return Answer(text, media_type=TEXT)
    lines = _logged(pod, container, asked)
    text = _written(_selected(lines, asked), asked)
    if asked.follow and asked.limit_bytes is None and _runs(pod, container):
        following = _followed(call, container, asked, text, len(lines))
        return StreamingResponse(following, media_type=TEXT)
    return Answer(text, media_type=TEXT)


def log_options(query: Query, pod: str, *, now: float) -> LogOptions:
    """Read the query; 422 for what the API server refuses."""
    tail, limit, seconds = (
        options.number(query, name) for name in ("tailLines", "limitBytes", "sinceSeconds")
    )
    time = query.get("sinceTime")
    found = []
    if tail is not None and tail < 0:
        why = "must be greater than or equal to 0"
        found.append(field_errors.invalid("tailLines", tail, why))
    if limit is not None and limit < 1:
        found.append(field_errors.invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and time:
        why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        found.append(field_errors.forbidden("", why))
    elif seconds is not None and seconds < 1:
        found.append(field_errors.invalid("sinceSeconds", seconds, "must be greater than 0"))
    if found:
        raise errors.invalid(OPTIONS, pod, found)
    since = None if seconds is None else now - seconds
    if time:
        try:
            since = seconds_of(time)
        except ValueError:
            raise errors.bad_request(
                f'parsing time "{time}" as "2006-01-02T15:04:05Z07:00"'
            ) from None
    return LogOptions(
        container=query.get("container", ""),
        follow=options.flag(query, "follow"),
        previous=options.flag(query, "previous"),
        timestamps=options.flag(query, "timestamps"),
        since=since,
        tail_lines=tail,
        limit_bytes=limit,
    )


def _pod(call: Call) -> Object:
    target = call.target
    return call.services.writes.get(PODS, target.namespace, target.name).decode()


def _logged(pod: Object, container: str, asked: LogOptions) -> list[Line]:
    """Return all lines; 400 for a container that has not started, as a kubelet says it."""
    name, status = pod["metadata"]["name"], status_of(pod, container)
    if asked.previous:
        raise errors.bad_request(
            f'previous terminated container "{container}" in pod "{name}" not found'
        )
    state = status.get("state") or {}
    if "running" not in state and "terminated" not in state:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise errors.bad_request(
            f'container "{container}" in pod "{name}" is waiting to start: {reason}'
        )
    return lines_of(pod, container, status)


def _runs(pod: Object, container: str) -> bool:
    return "running" in (status_of(pod, container).get("state") or {})


def _selected(lines: Iterable[Line], asked: LogOptions) -> Sequence[Line]:
    lines, since = list(lines), asked.since
    if since is not None:
        lines = [line for line in lines if seconds_of(line.time) >= since]
    if asked.tail_lines is not None:
        lines = lines[max(len(lines) - asked.tail_lines, 0) :]
    return lines


def _written(lines: Sequence[Line], asked: LogOptions) -> bytes:
    texts = (
        f"{line.time} {line.text}\n" if asked.timestamps else f"{line.text}\n" for line in lines
    )
    return "".join(texts).encode()[: asked.limit_bytes]


async def _following(call: Call, log: Log, asked: LogOptions, text: bytes) -> AsyncIterator[bytes]:
    """Yield *text*, and then what is written, to the end of the log."""
    news, known = asyncio.Event(), log.count

    def listen(_text: str) -> None:
        news.set()

    log.listeners.append(listen)
    try:
        yield text
        while call.services.is_open:
            new = min(log.count - known, len(log.lines))
            if new:
                known = log.count
                yield _written(list(log.lines)[-new:], asked)
            if log.is_ended:
                return
            await news.wait()
            news.clear()
    finally:
        log.listeners.remove(listen)


async def _followed(
    call: Call, container: str, asked: LogOptions, text: bytes, known: int
) -> AsyncIterator[bytes]:
    """Yield *text*, and then what is logged after the first *known* lines."""
    services = call.services
    cursor = services.store.watch(PODS.storage_key, services.store.version)
    yield text
    while services.is_open:
        try:
            pod = _pod(call)
        except errors.StatusError:
            return
        lines = lines_of(pod, container, status_of(pod, container))
        if len(lines) > known:
            yield _written(lines[known:], asked)
            known = len(lines)
        if not _runs(pod, container):
            return
        await cursor.wait()
        try:
            cursor.take(BATCH)
        except (ExpiredError, NotFoundError):
            cursor = services.store.watch(PODS.storage_key, services.store.version)
