"""The internals of uvicorn that berth.runtime.http_server overrides.

pyproject.toml has the releases of uvicorn that these tables were compared with by hand. To take
another one: read its changes to server.py and protocols/http/httptools_impl.py, raise the bound,
and mend what fails here.
"""

import inspect

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from berth.runtime import http_server

OVERRIDDEN = {
    uvicorn.Server: {
        "__init__": "(self, config)",
        "capture_signals": "(self)",
        "main_loop": "(self)",
        "on_tick": "(self, counter)",
        "shutdown": "(self, sockets=None)",
        "startup": "(self, sockets=None)",
    },
    HttpToolsProtocol: {
        "__init__": "(self, config, server_state, app_state, _loop=None)",
        "_unsupported_upgrade_warning": "(self)",
        "connection_lost": "(self, exc)",
        "connection_made": "(self, transport)",
        "data_received": "(self, data)",
        "on_headers_complete": "(self)",
        "on_message_begin": "(self)",
        "on_message_complete": "(self)",
        "on_response_complete": "(self)",
        "pause_writing": "(self)",
        "resume_writing": "(self)",
        "send_400_response": "(self, msg)",
        "shutdown": "(self)",
        "timeout_keep_alive_handler": "(self)",
    },
}
OURS = {
    uvicorn.Server: vars(http_server._Server),
    HttpToolsProtocol: vars(http_server.Protocol),
}


@pytest.mark.parametrize("theirs", OVERRIDDEN, ids=lambda theirs: theirs.__name__)
def test_what_is_overridden_is_what_uvicorn_calls(theirs: type) -> None:
    """A method that uvicorn has renamed would be overridden no more, without a word."""
    ours = {name for name in OURS[theirs] if callable(getattr(theirs, name, None))}

    assert ours - {"__doc__", "__module__"} == OVERRIDDEN[theirs].keys()
    assert {name: signature(getattr(theirs, name)) for name in OVERRIDDEN[theirs]} == (
        OVERRIDDEN[theirs]
    )


async def test_what_is_read_and_set_is_there() -> None:
    config = uvicorn.Config(lambda: None, http=http_server.Protocol, ws="none", log_config=None)
    config.load()
    server = uvicorn.Server(config)
    protocol = HttpToolsProtocol(config, ServerState(), {})

    assert {"server_state", "should_exit", "started"} <= vars(server).keys()
    assert {"connections", "tasks"} <= vars(server.server_state).keys()
    assert {"app", "cycle", "flow", "loop", "pipeline", "scope", "transport"} <= vars(
        protocol
    ).keys()


def signature(function: object) -> str:
    """Return the signature of *function* without types."""
    assert callable(function)
    told = inspect.signature(function)
    parameters = [each.replace(annotation=each.empty) for each in told.parameters.values()]
    return str(told.replace(parameters=parameters, return_annotation=told.empty))
