"""Errors between a client and an API server.

::

    ApiError
      NotFoundError            404
      ConflictError            409
        AlreadyExistsError     409, reason AlreadyExists
      GoneError                410, or reason Expired
      InvalidError             422
      ForbiddenError           403
      UnauthorizedError        401
      TooManyRequestsError     429
      ServerError              5xx
      UnavailableError         no answer: refused, reset, timed out
      FencedError              not sent: this process must not write any more

A status that is not listed (400, 405, 415 ...) is a plain ApiError.
"""

import logging

import msgspec

from berth.runtime.errors import UNREADABLE
from berth.runtime.loop_errors import is_of_network


class ApiError(Exception):
    """The server answered with a failure, or not at all.

    ``status`` is the HTTP status (0 without an answer), ``reason`` the machine-readable word of the
    ``Status`` object, ``message`` its sentence, which is also the text of the error, as in
    client-go.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class NotFoundError(ApiError):
    """The object does not exist, or the server does not serve its kind."""


class ConflictError(ApiError):
    """The object changed since it was read, or a subresource refused (a pod bound already)."""


class AlreadyExistsError(ConflictError):
    """An object of that name exists."""


class GoneError(ApiError):
    """The resource version or continue token is too old: list again."""


class InvalidError(ApiError):
    """The server understood the object or parameter and does not accept it."""


class ForbiddenError(ApiError):
    """RBAC or admission does not allow it."""


class UnauthorizedError(ApiError):
    """The server does not know who we are."""


class TooManyRequestsError(ApiError):
    """The server refused to work on the request now.

    ``retry_after`` is the number of seconds it asks us to wait, None when it did not say.
    """

    retry_after: float | None = None


class ServerError(ApiError):
    """The server failed; whether it acted is unknown."""


class UnavailableError(ApiError):
    """There was no (complete) answer.

    ``sent`` says whether the request reached the server: False when there was no connection, True
    when an answer had begun, None when it cannot be known. Whoever wrote something must look before
    assuming that nothing happened, unless ``sent`` is False.
    """

    def __init__(self, message: str, *, sent: bool | None) -> None:
        super().__init__(0, "Unavailable", message)
        self.sent = sent


class FencedError(ApiError):
    """The request was not sent, because this process may not write now (any more)."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Fenced", message)


BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExistsError,
    "Expired": GoneError,
    "Gone": GoneError,
}
BY_STATUS: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


class Status(msgspec.Struct, frozen=True):
    """``metav1.Status``, as far as it matters here."""

    code: int = 0
    reason: str = ""
    message: str = ""


decode_status = msgspec.json.Decoder(Status).decode


def from_status(body: bytes, *, status: int = 0, retry_after: str | None = None) -> ApiError:
    """Return the error that an answer means, for the caller to raise.

    *body* should be a ``Status``; proxies answer with other things, which become the message.
    *status* is that of the HTTP answer; without one (an ERROR event of a watch) the body's code is
    taken. *retry_after* is the header of that name; only its form in seconds is understood.
    """
    try:
        said = decode_status(body)
    except UNREADABLE:
        said = Status(message=bytes(body[:500]).decode(errors="replace").strip())
    code = status or said.code
    kind = BY_REASON.get(said.reason) or BY_STATUS.get(code)
    if kind is None:
        kind = ServerError if code >= 500 else ApiError
    reason = said.reason or "Unknown"
    error = kind(code, reason, said.message or f"the server answered {code} {reason}")
    if isinstance(error, TooManyRequestsError) and retry_after and retry_after.isdecimal():
        error.retry_after = float(retry_after)
    return error


def log_failure(
    log: logging.Logger, message: str, error: BaseException, extra: dict[str, object]
) -> None:
    """Log that something failed with *error*, which is added to *extra*.

    Errors of the API and of the network, also those that were the cause of another error, happen on
    any cluster: a warning. After a loss of leadership all that waits is fenced off at once, and the
    elector says why: that is for debugging. Anything else is a bug and gets a traceback.
    """
    expected = error if isinstance(error, ApiError) else error.__cause__
    extra = {**extra, "error": str(error)}
    if isinstance(expected, FencedError):
        log.debug(message, extra=extra)
    elif isinstance(expected, ApiError) or is_of_network(error):
        log.warning(message, extra=extra)
    else:
        log.error(message, extra=extra, exc_info=error)
