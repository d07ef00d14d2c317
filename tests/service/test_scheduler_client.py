"""What is asked of a scheduler, and what becomes of answers that are none."""

import json

import httpx
import pytest

from berth.insight.explain.explanation import Explanation
from berth.service.scheduler_client import (
    AskError,
    RunningScheduler,
    ask_about_pod,
    ask_to_simulate,
)
from berth.service.server.refusal import Refusal
from tests.builders import node
from tests.insight.whatif.asking import ask, snapshot

URL = "https://127.0.0.1:1"
TOLD = Explanation(pod="ns/p", uid="u", profile="default-scheduler")


def answering(response: httpx.Response, *, url: str = URL) -> RunningScheduler:
    return RunningScheduler(url, transport=httpx.MockTransport(lambda _: response))


def test_the_pod_and_the_number_of_nodes_are_asked_for() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(200, content=TOLD.model_dump_json(by_alias=True))

    scheduler = RunningScheduler(URL, transport=httpx.MockTransport(answer))
    told = ask_about_pod(scheduler, "ns/p", nodes="7")
    assert (told, seen) == (TOLD, [f"{URL}/explain/pods/ns/p?nodes=7"])


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        pytest.param("https://scheduler:10259", "Bearer x", id="over TLS"),
        pytest.param("http://127.0.0.1:1", "Bearer x", id="to this machine"),
        pytest.param("http://localhost:1", "Bearer x", id="to this machine by name"),
        pytest.param("http://scheduler:10259", None, id="never in the clear"),
    ],
)
def test_who_we_are_is_told_where_nobody_else_hears_it(url: str, sent: str | None) -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(200, json={"detail": "x"})

    transport = httpx.MockTransport(answer)
    scheduler = RunningScheduler(url, authorization="Bearer x", transport=transport)
    scheduler.ask("GET", "/", Refusal)
    assert seen == [sent]


def test_a_question_is_sent_as_json() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.path, json.loads(request.content)))
        return httpx.Response(413, json={"detail": "too large"})

    with pytest.raises(AskError, match="too large"):
        ask_to_simulate(RunningScheduler(URL, transport=httpx.MockTransport(answer)), {"pods": []})
    assert seen == [("POST", "/simulate", {"pods": []})]


def status(code: int, message: str) -> httpx.Response:
    return httpx.Response(code, json={"kind": "Status", "message": message, "code": code})


@pytest.mark.parametrize(
    ("response", "why"),
    [
        pytest.param(httpx.Response(404, json={"detail": "no such pod"}), "no such pod", id="404"),
        pytest.param(
            status(401, "Unauthorized"),
            f"{URL} does not accept these credentials (401): name a kubeconfig that it accepts,"
            " with --kubeconfig or $KUBECONFIG",
            id="401: what to do",
        ),
        pytest.param(
            status(403, 'forbidden: User "u" cannot get path "/explain/pods/a/b"'),
            f'{URL}: forbidden: User "u" cannot get path "/explain/pods/a/b" (403); a'
            " ClusterRole is needed with nonResourceURLs: [/explain/pods/a/b]",
            id="403: what to do",
        ),
        pytest.param(status(500, "on fire"), "on fire", id="a Status"),
        pytest.param(
            httpx.Response(
                422, json={"detail": [{"loc": ["query", "nodes"], "msg": "Input should be"}]}
            ),
            "nodes: Input should be",
            id="422: the field",
        ),
        pytest.param(
            httpx.Response(404, text="nothing here"),
            f"{URL} answers 404, but not as berth does",
            id="a stranger",
        ),
        pytest.param(
            httpx.Response(200, json={"pod": 1}),
            f"{URL} answers 200, but not as berth does",
            id="another 200",
        ),
    ],
)
def test_refusals(response: httpx.Response, why: str) -> None:
    with pytest.raises(AskError) as found:
        ask_about_pod(answering(response), "a/b", nodes="1")
    assert str(found.value) == why


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        pytest.param("refused", "refused", id="nobody there"),
        pytest.param(
            "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate",
            "name its CA with --kubeconfig or --certificate-authority, or use"
            " --insecure-skip-tls-verify",
            id="a certificate nobody vouches for",
        ),
        pytest.param(
            "[SSL: WRONG_VERSION_NUMBER] wrong version number",
            "perhaps it speaks plain HTTP",
            id="no TLS",
        ),
    ],
)
def test_connections_that_fail(error: str, hint: str) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(error)

    scheduler = RunningScheduler(URL, transport=httpx.MockTransport(fail))
    with pytest.raises(AskError) as found:
        ask_about_pod(scheduler, "a/b", nodes="1")
    assert str(found.value).startswith(f"no scheduler answers at {URL}: {error}")
    assert str(found.value).endswith(hint)


def test_an_address_that_is_none() -> None:
    with pytest.raises(AskError, match="no scheduler answers at nonsense"):
        ask_about_pod(RunningScheduler("nonsense"), "a/b", nodes="1")


def in_lines(*lines: object) -> RunningScheduler:
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    return answering(httpx.Response(200, content=content, headers=headers))


PROGRESS = {"progress": {"stage": "placing", "done": 3, "of": 9}}


def test_the_progress_of_a_simulation_is_heard() -> None:
    want = ask(snapshot(node("n")))
    heard: list[object] = []
    found = ask_to_simulate(
        in_lines(PROGRESS, PROGRESS, {"answer": want.model_dump(by_alias=True)}), {}, heard.append
    )
    assert (found, heard) == (want, [PROGRESS["progress"]] * 2)


@pytest.mark.parametrize(
    ("last", "error"),
    [
        pytest.param([{"error": {"status": 507, "detail": "too large"}}], "too large", id="error"),
        pytest.param([], "it ended without an answer", id="the scheduler has ended"),
        pytest.param(["{"], "it ended without an answer", id="something else"),
    ],
)
def test_a_simulation_may_fail_after_progress(last: list[object], error: str) -> None:
    with pytest.raises(AskError, match=error):
        ask_to_simulate(in_lines(PROGRESS, *last), {})
