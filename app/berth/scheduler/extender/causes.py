"""Causes of failed requests, in words that are the same for the same cause.

They end up in events, which become one only if their texts are equal. So there are no addresses of
our own side, no file positions of the TLS library, and nothing that the HTTP library wraps causes
in.
"""

import os
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

_POSITION: Final = re.compile(r" \((?:byte \d+|_ssl\.c:\d+)\)")


def cause(error: BaseException) -> str:
    """Return what *error* comes from: ``connection refused`` rather than that all attempts failed.

    That is the first failure of the operating system, name lookup or TLS behind it, or its own
    words.
    """
    for each in _behind(error):
        match each:
            case ssl.SSLCertVerificationError():
                return f"certificate verify failed: {each.verify_message.rstrip('.')}"
            case ssl.SSLError() if each.reason:
                return f"TLS: {each.reason.replace('_', ' ').lower()}"
            case socket.gaierror():
                return f"lookup: {(each.strerror or 'failed').lower()}"
            case OSError() if each.errno:
                return os.strerror(each.errno).lower()
    return _POSITION.sub("", str(error)) or type(error).__name__


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):  # attempts at several addresses
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__  # suppressed or not: httpcore does so
