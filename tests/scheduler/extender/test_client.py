"""One request to an extender: what goes wrong, who is told, and what it may cost."""

import asyncio
import gzip
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from berth.runtime.certificates import self_signed
from berth.runtime.clock import FakeClock
from berth.runtime.duration import Duration
from berth.runtime.redaction import without_password
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.config.types import ExtenderTLSConfig
from berth.scheduler.extender.breaker import LONGEST_PAUSE, TRIP_AFTER
from berth.scheduler.extender.build import build_extenders
from berth.scheduler.extender.client import ExtenderClient, client_context
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.wire import read_binding_result
from tests.scheduler.extender.fakes import PREFIX, Calls, FakeNetwork, config, extenders

URL = f"{PREFIX}/bind"


def client(
    answer: Any, *, calls: Calls | None = None, clock: FakeClock | None = None, **fields: Any
) -> ExtenderClient:
    network = FakeNetwork({"/scheduler/bind": answer})
    made = extenders(network, config(**fields), calls=calls, clock=clock)
    (extender,) = made
    return extender.client


async def ask(asked: ExtenderClient, read: Callable[[bytes], bytes] = bytes) -> bytes:
    return await asked.call("bind", "bind", b"{}", read)


async def test_an_answer() -> None:
    calls = Calls()
    assert await ask(client({"a": 1}, calls=calls)) == b'{"a":1}'
    assert calls.seen == [(PREFIX, "bind", "success", 0.0)]


@pytest.mark.parametrize(
    ("answer", "message", "may_have_acted"),
    [
        pytest.param(
            500, f"failed bind with extender at URL {URL}, code 500", True, id="server error"
        ),
        pytest.param(
            204, f"failed bind with extender at URL {URL}, code 204", True, id="only 200 will do"
        ),
        pytest.param(
            302, f"failed bind with extender at URL {URL}, code 302", True, id="redirected"
        ),
        pytest.param(
            httpx.ConnectError("connection refused"),
            f'Post "{URL}": connection refused',
            False,
            id="no connection: it cannot have acted",
        ),
        pytest.param(
            httpx.ReadError("reset"), f'Post "{URL}": reset', True, id="connection lost on the way"
        ),
        pytest.param(httpx.ReadError(""), f'Post "{URL}": ReadError', True, id="without words"),
    ],
)
async def test_failures(answer: Any, message: str, may_have_acted: bool) -> None:
    calls = Calls()
    with pytest.raises(ExtenderError) as caught:
        await ask(client(answer, calls=calls))
    assert (str(caught.value), caught.value.may_have_acted) == (message, may_have_acted)
    assert calls.seen == [(PREFIX, "bind", "failure", 0.0)]


async def test_the_time_limit_is_for_the_whole_request() -> None:
    never = client(lambda _: asyncio.Event().wait(), http_timeout=Duration.of(0.001))
    with pytest.raises(ExtenderError) as caught:
        await ask(never)
    assert str(caught.value) == f'Post "{URL}": no answer within 0.001 seconds'


@pytest.mark.parametrize("is_zipped", [False, True], ids=["plain", "zipped"])
async def test_an_answer_has_a_limit(is_zipped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[ExtenderClient.__module__], "MOST_ANSWER_BYTES", 100)
    sizes = iter((100, 101))

    def answer(_: httpx.Request) -> httpx.Response:
        body = b"x" * next(sizes)
        if is_zipped:
            zipped = {"Content-Encoding": "gzip"}
            return httpx.Response(200, content=gzip.compress(body), headers=zipped)
        return httpx.Response(200, content=body)

    (extender,) = extenders(httpx.MockTransport(answer), config())
    assert await ask(extender.client) == b"x" * 100
    with pytest.raises(ExtenderError) as caught:
        await ask(extender.client)
    assert str(caught.value) == f'Post "{URL}": the answer has more than 100 bytes'


async def test_one_that_fails_again_and_again_is_left_alone_and_tried_after_a_pause() -> None:
    answers: list[Any] = [500] * TRIP_AFTER
    calls, clock = Calls(), FakeClock()
    asked = client(lambda _: answers.pop(), calls=calls, clock=clock)
    for _ in range(TRIP_AFTER):
        with pytest.raises(ExtenderError):
            await ask(asked)
    with pytest.raises(ExtenderError) as caught:
        await ask(asked)
    assert str(caught.value) == (
        f"extender at URL {PREFIX} failed several times in a row and is left alone for a while;"
        f" last: failed bind with extender at URL {URL}, code 500"
    )
    assert not caught.value.may_have_acted

    clock.advance(1.0)
    answers.append({})
    await ask(asked)
    outcomes = [outcome for _, _, outcome, _ in calls.seen]
    assert outcomes == ["failure"] * TRIP_AFTER + ["not_sent", "success"]


async def test_what_is_said_of_one_that_is_left_alone_stays_the_same() -> None:
    """However often it has failed: equal events become one."""
    clock = FakeClock()
    asked = client(httpx.ConnectError("connection refused"), clock=clock)
    for _ in range(TRIP_AFTER):
        with pytest.raises(ExtenderError):
            await ask(asked)
    said = set()
    for _ in range(3):
        with pytest.raises(ExtenderError) as caught:
            await ask(asked)
        said.add(str(caught.value))
        clock.advance(LONGEST_PAUSE)
        with pytest.raises(ExtenderError, match=r"^Post"):
            await ask(asked)

    assert said == {
        f"extender at URL {PREFIX} failed several times in a row and is left alone for a while;"
        f' last: Post "{URL}": connection refused'
    }


async def test_a_call_that_is_given_up_says_nothing_about_the_extender() -> None:
    asked = client(lambda _: asyncio.Event().wait())
    for _ in range(TRIP_AFTER):
        task = asyncio.create_task(ask(asked))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert asked.breaker.failures == 0


async def test_closing_closes_the_connections_of_all() -> None:
    network = FakeNetwork({})
    await extenders(network, config("http://a"), config("http://b")).close()
    assert network.closed == 2


@pytest.mark.parametrize(
    ("url", "want"),
    [
        pytest.param("http://host:1/p", "http://host:1/p", id="nothing secret"),
        pytest.param("https://me:secret@host/p", "https://host/p", id="user and password"),
    ],
)
def test_without_password(url: str, want: str) -> None:
    assert without_password(url) == want


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        pytest.param(
            ExtenderTLSConfig(insecure=True, ca_data=b"x"),
            "insecure: Invalid value: true: there is a CA to verify with",
            id="insecure with a CA",
        ),
        pytest.param(
            ExtenderTLSConfig(ca_file="/nowhere/ca.pem"),
            'caFile: Invalid value: "/nowhere/ca.pem": No such file or directory',
            id="no such file",
        ),
        pytest.param(
            ExtenderTLSConfig(key_data=b"very secret", cert_data=b"no PEM"),
            "[SSL] PEM lib (_ssl.c:",
            id="no certificate, and the key is not told",
        ),
    ],
)
def test_a_tls_configuration_that_cannot_be_used(tls: ExtenderTLSConfig, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_extenders(
            [Config(url_prefix="https://host", tls_config=tls)], clock=FakeClock(), observer=Calls()
        )
    said = str(caught.value)
    assert said.startswith(f"extenders: extenders[0].tlsConfig: cannot be used: {problem}")
    assert "secret" not in said


def test_certificates_as_data_win_over_files() -> None:
    pair = self_signed(["host"], now=datetime(2026, 1, 1, tzinfo=UTC), name="test")
    tls = ExtenderTLSConfig(
        cert_file="/nowhere",
        key_file="/nowhere",
        ca_file="/nowhere",
        cert_data=pair.certificate,
        key_data=pair.key,
        ca_data=pair.certificate,
    )
    context = client_context(Config(url_prefix="https://host", enable_https=True, tls_config=tls))
    assert [len(context.get_ca_certs()), context.verify_mode] == [1, ssl.CERT_REQUIRED]


def test_certificates_in_files(tmp_path: Path) -> None:
    pair = self_signed(["host"], now=datetime(2026, 1, 1, tzinfo=UTC), name="test")
    for name, data in (("cert", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(data)
    cert, key = str(tmp_path / "cert"), str(tmp_path / "key")
    tls = ExtenderTLSConfig(cert_file=cert, key_file=key, ca_file=cert)
    context = client_context(Config(url_prefix="https://host", tls_config=tls))
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b'{"\xff":1}', id="no text"),
        pytest.param(b'{"x":' + b"[" * 20_000, id="brackets within brackets"),
    ],
)
async def test_an_answer_that_cannot_be_read(body: bytes) -> None:
    answer = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    (extender,) = extenders(answer, config())
    with pytest.raises(ExtenderError, match="answer cannot be read: "):
        await ask(extender.client, lambda content: str(read_binding_result(content)).encode())
