"""What is logged of errors that nobody waits for: a line where the network failed."""

import asyncio
import logging
import ssl

import pytest

from berth.runtime.loop_errors import log_loop_error

CLOSED = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(ConnectionResetError(104, "reset"), "[Errno 104] reset", id="reset"),
        pytest.param(ssl.SSLEOFError(8, "EOF occurred"), "EOF occurred", id="TLS ended"),
        pytest.param(
            ssl.SSLError(1, "[SSL: APPLICATION_DATA_AFTER_CLOSE_NOTIFY]"),
            "[SSL: APPLICATION_DATA_AFTER_CLOSE_NOTIFY]",
            id="TLS broken",
        ),
        pytest.param(TimeoutError(), "TimeoutError", id="timeout"),
        pytest.param(RuntimeError(CLOSED), CLOSED, id="closed, as uvloop has it"),
    ],
)
async def test_an_error_of_the_network_is_a_line(
    error: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    loop.call_exception_handler({"message": "Fatal error on transport", "exception": error})

    [record] = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)
    assert (record.what, record.error) == ("Fatal error on transport", told)  # type: ignore[attr-defined]


async def test_another_error_keeps_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    loop.call_exception_handler({"message": "a bug", "exception": KeyError("x")})
    loop.call_exception_handler({"message": "no exception"})

    bug, other = caplog.records
    assert bug.levelno == other.levelno == logging.ERROR
    assert bug.exc_info
