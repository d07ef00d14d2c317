"""What is served of the page, and what a browser is told about it."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from starlette.types import ASGIApp, Message

from berth.service.ui.files import MEDIA_TYPES, Files

SCRIPT = "export const a = 1;\n"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "static"
    (folder / "js" / "screens").mkdir(parents=True)
    for name, content in (
        ("index.html", "<!doctype html>"),
        ("icon.svg", "<svg/>"),
        ("js/main.js", SCRIPT),
        ("js/screens/what-if.js", SCRIPT),
        ("notes.txt", "not of the page"),
        ("js/.hidden.js", SCRIPT),
    ):
        (folder / name).write_text(content, encoding="utf-8")
    (tmp_path / "secret.js").write_text("secret", encoding="utf-8")
    return Files(folder)


async def ask(
    application: ASGIApp, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
) -> httpx.Response:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path, headers=headers)


async def never() -> Message:
    raise AssertionError("there is no body to read")


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        pytest.param("/ui/", "text/html; charset=utf-8", id="the page itself"),
        pytest.param("/ui/index.html", "text/html; charset=utf-8", id="by its name"),
        pytest.param("/ui/icon.svg", "image/svg+xml", id="a picture"),
        pytest.param("/ui/js/main.js", "text/javascript; charset=utf-8", id="a script"),
        pytest.param("/ui/js/screens/what-if.js", "text/javascript; charset=utf-8", id="deeper"),
    ],
)
async def test_what_is_served(files: Files, path: str, media_type: str) -> None:
    answer = await ask(files, path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert (await ask(files, path, "HEAD")).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/ui/nothing.js", id="no file"),
        pytest.param("/ui/js", id="a folder"),
        pytest.param("/ui/js/", id="a folder with a slash"),
        pytest.param("/ui/notes.txt", id="not of a kind that pages are made of"),
        pytest.param("/ui/js/.hidden.js", id="a hidden file"),
        pytest.param("/ui/../secret.js", id="outside"),
        pytest.param("/ui/js/../../secret.js", id="outside, from inside"),
        pytest.param("/ui/%2e%2e/secret.js", id="outside, encoded"),
        pytest.param("/ui/%2e%2e%2fsecret.js", id="outside, the slash encoded, too"),
        pytest.param("/ui/%252e%252e/secret.js", id="outside, encoded twice"),
        pytest.param("/ui/..%5csecret.js", id="outside, as Windows separates"),
        pytest.param("/ui//etc/passwd.js", id="an absolute path"),
        pytest.param("/ui/js//main.js", id="an empty folder"),
        pytest.param("/ui/js/main.js%00.html", id="a null byte"),
        pytest.param("/ui/js/main.js%0a", id="a line break"),
        pytest.param("/ui/C:secret.js", id="a drive"),
        pytest.param("/ui/" + "a" * 5_000 + ".js", id="a name that no file system takes"),
    ],
)
async def test_what_is_not_served(files: Files, path: str) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "headers": [], "path": unquote(path)}
    await files(scope, never, send)
    assert (sent[0]["status"], sent[1]["body"]) == (404, b"404 page not found\n")


async def test_the_page_may_be_behind_any_prefix(files: Files) -> None:
    answer = await ask(files, "/ui")
    assert (answer.status_code, answer.headers["location"]) == (308, "ui/")


async def test_nothing_can_be_written(files: Files) -> None:
    answer = await ask(files, "/ui/js/main.js", "PUT")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_what_has_not_changed_is_not_sent_again(files: Files) -> None:
    first = await ask(files, "/ui/js/main.js")
    assert first.headers["cache-control"] == "no-cache"
    again = await ask(
        files, "/ui/js/main.js", headers={"If-None-Match": f'"x", {first.headers["etag"]}'}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = await ask(files, "/ui/icon.svg", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


@pytest.mark.parametrize("path", ["/ui", "/ui/", "/ui/js/main.js", "/ui/nothing.js"])
async def test_browsers_are_told_to_trust_nothing_else(files: Files, path: str) -> None:
    headers = (await ask(files, path)).headers
    policy = dict(
        each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_every_file_of_the_page_has_a_media_type() -> None:
    folder = resources.files("berth.service.ui") / "static"
    with resources.as_file(folder) as path:
        names = [each.name for each in path.rglob("*") if each.is_file()]
    assert {name.rpartition(".")[2] for name in names} <= MEDIA_TYPES.keys()
