"""About this process: ``/configz``, ``/flagz``, ``/statusz`` (spec §7.3)."""

import json
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias

import yaml
from fastapi import APIRouter, Header
from fastapi.responses import PlainTextResponse, Response

from berth.runtime.clock import Clock, rfc3339
from berth.runtime.media_types import accepted
from berth.runtime.redaction import redacted
from berth.runtime.release import LATEST, EffectiveVersion, version
from berth.scheduler.config.configz import to_configz
from berth.scheduler.config.feature_gates import (
    COMPONENT_FLAGZ,
    COMPONENT_STATUSZ,
    default_gates,
)
from berth.scheduler.config.kube_features import Gate
from berth.scheduler.config.options import Options
from berth.scheduler.config.types import KubeSchedulerConfiguration

COMPONENT: Final = "kube-scheduler"
"""Whose place this process takes; what reads these pages looks for it."""

GROUP: Final = "config.k8s.io"
VERSIONS: Final = ("v1beta1", "v1alpha1")
STRUCTURED: Final[Mapping[str, Callable[[Any], str]]] = {
    "application/json": json.dumps,
    "application/yaml": yaml.safe_dump,
}

WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility"
    " guarantees and is for debugging purposes only."
)

_NO_SUCH_FORM: Final[dict[int | str, dict[str, Any]]] = {
    406: {
        "description": "None of the accepted formats is supported",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}
_Accept: TypeAlias = Annotated[
    str, Header(description="`text/plain`, or a structured format such as `as=Flagz`")
]


def flag_values(options: Options) -> dict[str, str]:
    """Return all flags with their values as they would be written, without secrets."""
    return {
        name.replace("_", "-"): redacted(_flag_value(value))
        for name, value in sorted(options.values().items())
    }


def zpages(
    *,
    configuration: Callable[[], KubeSchedulerConfiguration],
    flags: Mapping[str, str],
    paths: Callable[[], list[str]],
    clock: Clock,
    effective: EffectiveVersion = LATEST,
    gates: Mapping[str, Gate] | None = None,
) -> APIRouter:
    """Return the endpoints of a process that starts now and serves *paths*.

    *effective* is the release that the process is like. *gates* decide whether /flagz and /statusz
    are among them; by default they are those of that release.

    Unlike kube-scheduler's, no page has secrets.
    """
    router = APIRouter(tags=["about"])
    gates = default_gates(effective) if gates is None else gates
    began, began_at = clock.monotonic(), clock.now()

    @router.get("/configz", summary="The configuration in force", response_class=Response)
    async def configz() -> Response:
        content = json.dumps(to_configz(configuration()), ensure_ascii=False)
        return Response(content, media_type="application/json")

    async def flagz(accept: _Accept = "") -> Response:
        lines = [f"{name}={value}" for name, value in flags.items()]
        return _page("Flagz", accept, lines, {"flags": dict(flags)})

    async def statusz(accept: _Accept = "") -> Response:
        up = int(clock.monotonic() - began)
        started = datetime.fromtimestamp(began_at, UTC)
        served = paths()
        lines = [
            f"Started: {started:%a %b %e %H:%M:%S UTC %Y}",
            f"Up: {up // 3600} hr {up // 60 % 60:02d} min {up % 60:02d} sec",
            f"Python version: {platform.python_version()}",
            f"Binary version: {version()}",
            f"Emulation version: {effective.emulation}",
            f"Paths: {' '.join(served)}",
        ]
        facts = {
            "startTime": rfc3339(began_at),
            "uptimeSeconds": up,
            "pythonVersion": platform.python_version(),
            "binaryVersion": version(),
            "emulationVersion": effective.emulation,
            "paths": served,
        }
        return _page("Statusz", accept, lines, facts)

    for gate, path, summary, endpoint in (
        (COMPONENT_FLAGZ, "/flagz", "The flags in force", flagz),
        (COMPONENT_STATUSZ, "/statusz", "Version and start time", statusz),
    ):
        if gates[gate].enabled:
            router.add_api_route(
                path, endpoint, summary=summary, response_class=Response, responses=_NO_SUCH_FORM
            )
    return router


def _page(kind: str, accept: str, lines: list[str], facts: dict[str, Any]) -> Response:
    """Answer in the form that *accept* prefers; 406 when it accepts none of ours."""
    for media_type, params in sorted(accepted(accept or "*/*"), key=lambda media: -media.quality):
        if media_type in ("*/*", "text/*", "text/plain"):
            title = f"{COMPONENT} {'flags' if kind == 'Flagz' else 'statusz'}"
            return PlainTextResponse("\n".join(["", title, WARNING, "", *lines, ""]))
        wanted = params.get("v", "")
        if (
            media_type in STRUCTURED
            and params.get("as") == kind
            and params.get("g") == GROUP
            and wanted in VERSIONS
        ):
            page = {
                "kind": kind,
                "apiVersion": f"{GROUP}/{wanted}",
                "metadata": {"name": COMPONENT},
                **facts,
            }
            return Response(STRUCTURED[media_type](page), media_type=media_type)
    offered = [f"{form};as={kind};g={GROUP};v={v}" for form in STRUCTURED for v in VERSIONS]
    return PlainTextResponse(
        f"only the following media types are accepted: {', '.join(['text/plain', *offered])}\n", 406
    )


def _flag_value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple():
            return f"[{','.join(value)}]"
        case Mapping():
            return ",".join(f"{key}={_flag_value(item)}" for key, item in sorted(value.items()))
        case _:
            return str(value)
