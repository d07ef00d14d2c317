"""From an answer to an error."""

import pytest

from berth.kube.client import errors
from berth.kube.client.errors import ApiError, TooManyRequestsError, UnavailableError, from_status


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        pytest.param(
            404,
            b'{"kind":"Status","code":404,"reason":"NotFound","message":"pods \\"a\\" not found"}',
            errors.NotFoundError,
            'pods "a" not found',
            id="not found",
        ),
        pytest.param(
            409,
            b'{"reason":"Conflict","message":"already assigned"}',
            errors.ConflictError,
            "already assigned",
            id="conflict",
        ),
        pytest.param(
            409,
            b'{"reason":"AlreadyExists","message":"m"}',
            errors.AlreadyExistsError,
            "m",
            id="a conflict because it exists",
        ),
        pytest.param(
            410,
            b'{"reason":"Expired","message":"m"}',
            errors.GoneError,
            "m",
            id="gone",
        ),
        pytest.param(
            0,
            b'{"code":410,"reason":"Expired","message":"too old"}',
            errors.GoneError,
            "too old",
            id="an ERROR event has its status in the body alone",
        ),
        pytest.param(
            500,
            b'{"reason":"Expired","message":"m"}',
            errors.GoneError,
            "m",
            id="the reason is believed before the status",
        ),
        pytest.param(
            401, b"{}", errors.UnauthorizedError, "the server answered 401 Unknown", id="401"
        ),
        pytest.param(
            403, b"{}", errors.ForbiddenError, "the server answered 403 Unknown", id="403"
        ),
        pytest.param(422, b"{}", errors.InvalidError, "the server answered 422 Unknown", id="422"),
        pytest.param(504, b"{}", errors.ServerError, "the server answered 504 Unknown", id="504"),
        pytest.param(400, b"{}", ApiError, "the server answered 400 Unknown", id="400"),
        pytest.param(
            502,
            b"<html>oops\xff",
            errors.ServerError,
            "<html>oops\ufffd",
            id="a proxy",
        ),
        pytest.param(404, b'{"code":"x"}', errors.NotFoundError, '{"code":"x"}', id="odd JSON"),
        pytest.param(
            500, b'{"x":' + b"[" * 20_000, errors.ServerError, '{"x":' + "[" * 495, id="deep JSON"
        ),
    ],
)
def test_from_status(status: int, body: bytes, kind: type[ApiError], words: str) -> None:
    error = from_status(body, status=status)

    assert (type(error), str(error)) == (kind, words)


@pytest.mark.parametrize(
    ("header", "want"),
    [
        pytest.param("3", 3.0, id="seconds"),
        pytest.param(None, None, id="not said"),
        pytest.param("Fri, 20 Nov 2026 13:06:21 GMT", None, id="a date is not understood"),
    ],
)
def test_retry_after(header: str | None, want: float | None) -> None:
    error = from_status(b"{}", status=429, retry_after=header)

    assert isinstance(error, TooManyRequestsError)
    assert error.retry_after == want


def test_an_unavailable_server_is_an_api_error_without_a_status() -> None:
    error = UnavailableError("POST /x: connection refused", sent=False)

    assert isinstance(error, ApiError)
    assert (error.status, error.reason, error.sent) == (0, "Unavailable", False)
    assert str(error) == "POST /x: connection refused"
