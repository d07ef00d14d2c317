"""The same words for the same cause, on whatever event loop and by whatever HTTP library."""

import errno
import itertools
import socket
import ssl

import httpx
import msgspec
import pytest

from berth.runtime.clock import FakeClock
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.extender.build import build_extenders
from berth.scheduler.extender.client import cause
from berth.scheduler.extender.errors import ExtenderError
from tests.scheduler.extender.fakes import Calls


def wrapped(*causes: BaseException) -> BaseException:
    """Return the first of *causes*, each of which was raised from the next."""
    for outer, inner in itertools.pairwise(causes):
        outer.__cause__ = inner
    return causes[0]


REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 41234)")


def outer() -> httpx.ConnectError:
    return httpx.ConnectError("All connection attempts failed")


def not_verified() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] (_ssl.c:1006)")
    error.verify_message = "certificate is not valid for 'berth.berth.svc'."
    error.reason = "CERTIFICATE_VERIFY_FAILED"
    return error


def tls_error() -> ssl.SSLError:
    error = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")
    error.reason = "WRONG_VERSION_NUMBER"
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(wrapped(outer(), OSError("all"), REFUSED), "connection refused", id="refused"),
        pytest.param(
            wrapped(outer(), ExceptionGroup("several addresses", [REFUSED, OSError("other")])),
            "connection refused",
            id="refused at several addresses",
        ),
        pytest.param(
            wrapped(httpx.ReadError(""), ConnectionResetError(errno.ECONNRESET, "x")),
            "connection reset by peer",
            id="reset",
        ),
        pytest.param(
            wrapped(outer(), socket.gaierror(-2, "Name or service not known")),
            "lookup: name or service not known",
            id="no such name",
        ),
        pytest.param(
            wrapped(outer(), not_verified()),
            "certificate verify failed: certificate is not valid for 'berth.berth.svc'",
            id="another's certificate",
        ),
        pytest.param(wrapped(outer(), tls_error()), "TLS: wrong version number", id="not TLS"),
        pytest.param(
            msgspec.DecodeError("JSON is malformed: invalid character (byte 17)"),
            "JSON is malformed: invalid character",
            id="not JSON",
        ),
        pytest.param(httpx.ReadError(""), "ReadError", id="without words"),
    ],
)
def test_cause(error: BaseException, said: str) -> None:
    assert cause(error) == said


@pytest.mark.wall
async def test_an_extender_that_does_not_run() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    made = build_extenders([Config(url_prefix=url)], clock=FakeClock(), observer=Calls())
    (extender,) = made
    with pytest.raises(ExtenderError) as caught:
        await extender.client.call("bind", "bind", b"{}", bytes)
    await made.close()

    assert str(caught.value) == f'Post "{url}/bind": connection refused'
    assert not caught.value.may_have_acted
