"""Asks a running scheduler, over HTTP."""

from urllib.parse import quote

import httpx
from pydantic import ValidationError

from app.explain.explanation import Explanation
from app.server.application import Refusal

TIMEOUT_SECONDS = 30.0


class AskError(Exception):
    """There is no answer; the message says why and whom was asked."""


def ask_about_pod(
    url: str, key: str, *, nodes: str, transport: httpx.BaseTransport | None = None
) -> Explanation:
    """Return what the scheduler at *url* tells of the pod ``namespace/name``.

    *nodes*: about how many nodes, or ``all``. Raises AskError.
    """
    path = f"/explain/pods/{quote(key)}"
    try:
        with httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, transport=transport) as client:
            answer = client.get(path, params={"nodes": nodes})
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise AskError(f"no scheduler answers at {url}: {exc}") from exc
    try:
        if answer.status_code == httpx.codes.OK:
            return Explanation.model_validate_json(answer.content)
        raise AskError(Refusal.model_validate_json(answer.content).detail)
    except ValidationError as exc:
        raise AskError(f"{url} answers {answer.status_code}, but not as berth does") from exc
