"""Log lines: their form, which of them are written, and what must never be in them."""

import io
import json
import logging

import pytest

from berth.runtime import log as logs
from berth.runtime.redaction import redacted
from tests.hostile_text import FORGES, HOSTILE, LONE, misread

pytestmark = pytest.mark.usefixtures("root_logger")

TOKEN = "eyJhbGciOiJSUzI1NiIs.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


def written(v: int, *, vmodule: tuple[str, ...] = (), format: str = "text") -> io.StringIO:
    stream = io.StringIO()
    logs.setup_by_flags(v, format=format, vmodule=vmodule, stderr=stream)
    return stream


def said(stream: io.StringIO) -> list[str]:
    return [line.split(": ", 1)[1] for line in stream.getvalue().splitlines()]


def test_text() -> None:
    stream = written(0)
    logging.getLogger("berth.scheduler").info("pod bound", extra={"pod": "a/b", "why": "two words"})
    assert stream.getvalue()[12:] == " INFO berth.scheduler: pod bound pod=a/b why='two words'\n"


def test_json() -> None:
    stream = written(2, format="json")
    logger = logging.getLogger("berth.x")
    logger.debug("pod bound", extra={"pod": "a/b", "attempts": 2})
    logger.error("no answer", extra={"error": "refused"})
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in lines:
        assert isinstance(line.pop("ts"), float)
        assert line.pop("caller").startswith("test_log.py:")
    assert lines == [
        {"logger": "berth.x", "msg": "pod bound", "v": 2, "pod": "a/b", "attempts": 2},
        {"logger": "berth.x", "msg": "no answer", "err": "refused"},
    ]


def test_an_exception_is_one_json_line() -> None:
    stream = written(0, format="json")
    try:
        raise ValueError("three")
    except ValueError:
        logging.getLogger("berth.x").exception("it failed")
    (line,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert line["err"] == "three"
    assert line["stacktrace"].endswith("ValueError: three")


@pytest.mark.parametrize(
    ("v", "vmodule", "want"),
    [
        pytest.param(0, (), ["info a", "info b"], id="by default no debug lines"),
        pytest.param(1, (), ["info a", "info b"], id="one is not enough for them"),
        pytest.param(2, (), ["debug a", "info a", "debug b", "info b"], id="from 2 on"),
        pytest.param(0, ("binding_cycle=2",), ["debug a", "info a", "info b"], id="of one module"),
        pytest.param(0, ("bind*=4",), ["debug a", "info a", "info b"], id="of a pattern"),
        pytest.param(0, ("scheduler=4",), ["info a", "info b"], id="a package is no module"),
        pytest.param(
            0, ("scheduler/*=4",), ["debug a", "info a", "info b"], id="a slash means the path"
        ),
        pytest.param(
            0,
            ("b*=0", "binding_cycle=4"),
            ["info a", "info b"],
            id="the first pattern that matches",
        ),
        pytest.param(
            2,
            ("binding_cycle=0",),
            ["debug a", "info a", "debug b", "info b"],
            id="it only adds lines",
        ),
    ],
)
def test_verbosity(v: int, vmodule: tuple[str, ...], want: list[str]) -> None:
    stream = written(v, vmodule=vmodule)
    for name, logger in (
        ("a", "berth.scheduler.binding_cycle"),
        ("b", "berth.insight.heap"),
    ):
        logging.getLogger(logger).debug("debug %s", name)
        logging.getLogger(logger).info("info %s", name)
    assert said(stream) == want


def test_verbosity_changes_while_the_process_runs() -> None:
    stream = written(0, vmodule=("heap=2",))
    logger, chatty = logging.getLogger("berth.x"), logging.getLogger("app.heap")
    logger.debug("before")
    logs.set_verbosity(4)
    logger.debug("during")
    logs.set_verbosity(0)
    logger.debug("after")
    chatty.debug("as ever")
    assert said(stream) == ["during", "as ever"]


def test_libraries_are_heard_only_when_something_is_wrong() -> None:
    stream = written(10)
    for name in logs.NOISY:
        logging.getLogger(name).info("hello")
    logging.getLogger("uvicorn.error").warning("help")
    assert said(stream) == ["help"]


def test_errors_alone_go_to_stderr_when_streams_are_split() -> None:
    out, err = io.StringIO(), io.StringIO()
    logs.setup_by_flags(0, split_stream=True, stdout=out, stderr=err)
    for level in (logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("berth.x").log(level, "%d", level)
    assert (said(out), said(err)) == (["20", "30"], ["40"])


@pytest.mark.parametrize("item", ["x", "=1", "x=", "x=one", ""])
def test_a_bad_vmodule_is_refused(item: str) -> None:
    with pytest.raises(ValueError, match="expect comma-separated list of filename=N"):
        logs.modules([item])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(f"Bearer {TOKEN} refused", "Bearer [redacted] refused", id="a bearer token"),
        pytest.param(f"got {TOKEN}", "got [redacted]", id="a JWT by itself"),
        pytest.param(
            "{'Authorization': 'Basic dTpw', 'Accept': 'x'}",
            "{'Authorization': '[redacted]', 'Accept': 'x'}",
            id="a header in a dict",
        ),
        pytest.param("Authorization: Negotiate abc", "Authorization: [redacted]", id="a header"),
        pytest.param("https://u:p@host/x", "https://[redacted]@host/x", id="a URL's user"),
        pytest.param("https://t0ken@host/x", "https://[redacted]@host/x", id="a URL's token"),
        pytest.param("keyData: 'YWJj'", "keyData: '[redacted]'", id="a key of an extender"),
        pytest.param("token=abc next=1", "token=[redacted] next=1", id="a field"),
        pytest.param('{"id_token": "abc"}', '{"id_token": "[redacted]"}', id="a JSON field"),
        pytest.param(
            "a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
            "a [redacted] b",
            id="a private key",
        ),
        pytest.param(
            "-----BEGIN PRIVATE KEY-----\nMII", "[redacted]", id="a private key that is cut off"
        ),
        pytest.param("pod bound pod=a/b", "pod bound pod=a/b", id="nothing to hide"),
        pytest.param("https://host:6443/api", "https://host:6443/api", id="a port is no password"),
    ],
)
def test_credentials_are_blotted_out(text: str, want: str) -> None:
    assert redacted(text) == want


@pytest.mark.parametrize(
    "part",
    [
        "eyJ-",
        "eyJaaaaaaaa/",
        "-----BEGIN PRIVATE KEY-",
        "bearer ",
        "token ",
        "token",
        "://a:",
        "://a",
    ],
)
def test_looking_for_credentials_takes_no_longer_than_reading(part: str) -> None:
    text = part * (1_000_000 // len(part))
    assert redacted(text) in (text, "[redacted]")  # in minutes, were it quadratic


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("default/web", "default/web", id="a word"),
        pytest.param("two words", "'two words'", id="two words"),
        pytest.param("", "''", id="nothing"),
        pytest.param("a\nINFO b", "'a\\nINFO b'", id="what looks like another line"),
        pytest.param("\x1b[2J", "'\\x1b[2J'", id="what terminals obey"),
    ],
)
def test_a_field_is_one_word_whatever_is_in_it(value: str, want: str) -> None:
    stream = written(0)
    logging.getLogger("berth.x").warning("said", extra={"what": value})
    assert stream.getvalue().endswith(f" said what={want}\n")


@pytest.mark.parametrize("format", ["text", "json"])
def test_credentials_are_blotted_out_wherever_they_are(format: str) -> None:
    stream = written(0, format=format)
    logger = logging.getLogger("berth.x")
    logger.warning("said Bearer %s", TOKEN)
    logger.warning("a field", extra={"headers": {"Authorization": f"Bearer {TOKEN}"}})
    try:
        raise ValueError(f"bad token: {TOKEN}")
    except ValueError:
        logger.exception("raised")
    logger.warning("escaped", extra={"text": '{"Authorization": "Basic c2VjcmV0"}'})
    logger.warning("nested", extra={"sent": [{"token": "c2VjcmV0"}]})
    assert "c2VjcmV0" not in stream.getvalue()
    assert stream.getvalue().count("[redacted]") >= 5
    assert TOKEN not in stream.getvalue()


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_is_one_line_that_no_terminal_obeys(format: str, text: str) -> None:
    stream = written(0, format=format)
    logger = logging.getLogger("berth.x")
    logger.warning("said %s", text, extra={"what": text, "nested": [{text: text}]})
    (line,) = stream.getvalue().splitlines()
    assert not misread(line)
    if format == "json" and text is not LONE:
        assert json.loads(line)["what"] == text
        assert json.loads(line)["nested"] == [{text: text}]


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("text", HOSTILE)
def test_an_exception_cannot_forge_a_line(format: str, text: str) -> None:
    stream = written(0, format=format)
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("berth.x").exception("raised")
    first, *rest = stream.getvalue().split("\n")
    assert "raised" in first
    assert not misread(stream.getvalue())
    assert all(line.startswith("    ") for line in rest if line)
    if text is FORGES:
        assert "pod bound" in stream.getvalue()
