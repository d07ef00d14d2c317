"""Asks a running scheduler, over HTTP."""

import json
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from berth.insight.explain.explanation import Explanation, WorkloadExplanation
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.workload import Workload
from berth.runtime.addresses import THIS_MACHINE
from berth.runtime.errors import UserError
from berth.runtime.printable import printable

if TYPE_CHECKING:
    from berth.insight.shadow.report import Found
    from berth.insight.whatif.answer import Answer

TIMEOUT_SECONDS: Final = 30.0
SIMULATE_SECONDS: Final = 60.0
"""Without a sign of life. While a scheduler simulates, it says each second how far it is."""
LINES: Final = "application/x-ndjson"

DIFFERENCES_ASKED: Final = 1_000
"""The newest: as many as a page of the shadow has."""

Model = TypeVar("Model", bound=BaseModel)


class AskError(UserError):
    """There is no answer; the message says why, which URL was asked, and what may help."""


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """A scheduler that answers at *url*, and how it and we prove who we are."""

    url: str
    authorization: str = ""
    """The header of that name, ``Bearer ...``; sent over TLS or to this machine only."""
    tls: ssl.SSLContext | bool = True
    """Which CAs to trust, and which certificate to show; True: those of this system."""
    transport: httpx.BaseTransport | None = None
    """In place of a connection."""

    def ask(
        self,
        method: str,
        path: str,
        answer: type[Model],
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        timeout: float = TIMEOUT_SECONDS,
        hear: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Model:
        """Send one request and return its *answer*; *timeout* is in seconds without a sign of life.

        Progress is told to *hear*, where there is somebody to hear it. Raises AskError.
        """
        try:
            with httpx.Client(
                base_url=self.url, timeout=timeout, verify=self.tls, transport=self.transport
            ) as client:
                request = client.build_request(
                    method,
                    path,
                    params=params,
                    json=body,
                    headers=self._headers(hears=hear is not None),
                )
                status, content = _answered(client, request, hear)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as exc:
            raise AskError(no_answer(self.url, exc)) from exc
        if not 200 <= status < 300:
            raise AskError(refusal(self.url, path, status=status, content=content))
        try:
            return answer.model_validate_json(content)
        except ValidationError as exc:
            raise AskError(f"{self.url} answers {status}, but not as berth does") from exc

    def _headers(self, *, hears: bool) -> dict[str, str]:
        may_be_sent = self.authorization and may_have_secrets(self.url)
        headers = {"Authorization": self.authorization} if may_be_sent else {}
        return headers | ({"Accept": f"{LINES}, application/json"} if hears else {})


def _answered(
    client: httpx.Client,
    request: httpx.Request,
    hear: Callable[[Mapping[str, Any]], None] | None,
) -> tuple[int, bytes]:
    """Return the status and the content of the answer, of which the progress is told to *hear*."""
    response = client.send(request, stream=hear is not None)
    if hear is None or not response.headers.get("Content-Type", "").startswith(LINES):
        return response.status_code, response.read()
    try:
        for line in response.iter_lines():
            said: Any = json.loads(line)
            match said:
                case {"progress": dict()}:
                    hear(said["progress"])
                case {"error": {"status": int(status), "detail": str(why)}}:
                    return status, json.dumps({"detail": why}).encode()
                case {"answer": found}:
                    return response.status_code, json.dumps(found).encode()
    except ValueError as exc:
        raise httpx.DecodingError(f"a line is not JSON: {exc}") from exc
    finally:
        response.close()
    raise httpx.RemoteProtocolError("it ended without an answer")


def may_have_secrets(url: str) -> bool:
    """Whether credentials may be sent to *url*: over TLS, or to this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in THIS_MACHINE


def no_answer(url: str, error: Exception) -> str:
    """Return why there is no answer from *url*, and what may help."""
    return f"no scheduler answers at {url}: {str(error) or type(error).__name__}{_help(error)}"


def refusal(url: str, path: str, *, status: int, content: bytes) -> str:
    """Return what the scheduler at *url* says who refuses *path*, and what may help."""
    why = printable(_reason(content))
    match status:
        case httpx.codes.UNAUTHORIZED:
            return (
                f"{url} does not accept these credentials (401): name a kubeconfig that it"
                " accepts, with --kubeconfig or $KUBECONFIG"
            )
        case httpx.codes.FORBIDDEN:
            return (
                f"{url}: {why or 'forbidden'} (403); a ClusterRole is needed with"
                f" nonResourceURLs: [{path}]"
            )
    return why or f"{url} answers {status}, but not as berth does"


def ask_about_pod(scheduler: RunningScheduler, key: str, *, nodes: str) -> Explanation:
    """Return what *scheduler* says about the pod ``namespace/name``.

    *nodes*: about how many nodes, or ``all``. Raises AskError.
    """
    path = f"/explain/pods/{quote(key)}"
    return scheduler.ask("GET", path, Explanation, params={"nodes": nodes})


def ask_about_workload(
    scheduler: RunningScheduler, namespace: str, workload: Workload, *, nodes: str
) -> WorkloadExplanation:
    """Return what *scheduler* says about the pending pods of *workload*; otherwise the same."""
    params = {"workload": str(workload), "nodes": nodes}
    path = f"/explain/pods/{quote(namespace, safe='')}"
    return scheduler.ask("GET", path, WorkloadExplanation, params=params)


def ask_about_pod_group(
    scheduler: RunningScheduler, namespace: str, name: str, *, nodes: str, composite: bool = False
) -> PodGroupExplanation:
    """Return what *scheduler* says about a PodGroup or CompositePodGroup; otherwise the same."""
    path = f"/explain/podgroups/{quote(namespace, safe='')}/{quote(name, safe='')}"
    params = {"nodes": nodes, **({"composite": "true"} if composite else {})}
    return scheduler.ask("GET", path, PodGroupExplanation, params=params)


def ask_shadow(scheduler: RunningScheduler) -> "Found":
    """Return what *scheduler*, which runs with ``--shadow``, has found. Raises AskError."""
    from berth.insight.shadow.report import Found  # here: it imports numpy

    params = {"differing": "true", "limit": str(DIFFERENCES_ASKED)}
    return scheduler.ask("GET", "/debug/shadow", Found, params=params)


def ask_to_simulate(
    scheduler: RunningScheduler,
    question: Mapping[str, Any],
    hear: Callable[[Mapping[str, Any]], None] = lambda _progress: None,
) -> "Answer":
    """Simulate *question* on the cluster as *scheduler* sees it. Raises AskError.

    *hear* is told how far it is: ``stage``, and ``done`` of ``of`` pods, or nodes.
    """
    from berth.insight.whatif.answer import Answer

    return scheduler.ask(
        "POST", "/simulate", Answer, body=question, timeout=SIMULATE_SECONDS, hear=hear
    )


def _reason(content: bytes) -> str:
    """Return what a refusal says, of ours or as API servers word it; empty if it is neither."""
    with suppress(ValueError):
        match json.loads(content):
            case {"detail": str(why)} | {"kind": "Status", "message": str(why)}:
                return why
            case {"detail": [*problems]}:
                return "; ".join(map(_problem, problems))
    return ""


def _problem(problem: Any) -> str:
    match problem:
        case {"loc": [_, *where], "msg": why}:
            return f"{'.'.join(map(str, where))}: {why}"
    return str(problem)


def _help(error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return (
            "; name its CA with --kubeconfig or --certificate-authority, or use"
            " --insecure-skip-tls-verify"
        )
    if "WRONG_VERSION_NUMBER" in str(error):
        return "; perhaps it speaks plain HTTP"
    return ""
