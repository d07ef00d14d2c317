"""``docs/reference/http.md``: every endpoint, from the OpenAPI documents of the applications."""

from collections.abc import Iterable
from typing import Any, Final

from fastapi import FastAPI

from docs.generate import markdown
from docs.generate.applications import applications

INTRODUCTION = """\
A running scheduler describes all of this in `/openapi.json`, with the schemas of bodies and
answers. [Explain and what-if](../explain.md#use-the-http-api) shows how to call it with `curl`;
[Security](../security.md#who-may-call-berth) says who may."""
SCHEDULER = """\
HTTPS, port 10259 for `berth run` and 10261 for `berth up`. Every answer that is a list has pages:
`limit` is the size of one, and the `continue` of an answer is the `continue` parameter of the next
request. With `berth run --serve-ui`, [the page](../ui.md) is below `/ui/`."""
EXTENDER = """\
Port 10262 for `berth extender`, or `--extender-port` of `berth run`. The protocol is that of
kube-scheduler's extenders; see the [extender recipe](../extender.md)."""

USUAL: Final = {
    "200": "Successful Response",
    "422": "Validation Error",
}
"""Answers that FastAPI adds to every operation."""
PAGES: Final = {"limit", "continue"}
"""Parameters of every list, which the introduction explains."""


def page() -> str:
    built = applications()
    return markdown.page(
        "HTTP endpoints",
        INTRODUCTION,
        "## Scheduler",
        SCHEDULER,
        *_sections(built.scheduler),
        "## Extender port",
        EXTENDER,
        *_sections(built.extender),
        source="the OpenAPI documents of the scheduler and the extender port",
    )


def _sections(application: FastAPI) -> Iterable[str]:
    paths = application.openapi()["paths"]
    rows = [
        (
            markdown.code(f"{method.upper()} {path}"),
            markdown.plain(operation.get("summary", "")),
            _parameters(operation),
            _statuses(operation),
        )
        for path, operations in sorted(paths.items())
        for method, operation in operations.items()
    ]
    yield markdown.table(("Request", "Returns", "Parameters", "Errors"), rows)


def _parameters(operation: dict[str, Any]) -> str:
    told = [
        f"{markdown.code(each['name'])}: {markdown.plain(each['description'])}"
        for each in operation.get("parameters", ())
        if each["in"] == "query" and each["name"] not in PAGES
    ]
    return "<br>".join(told)


def _statuses(operation: dict[str, Any]) -> str:
    told = [
        f"{status}: {markdown.plain(answer['description'])}"
        for status, answer in sorted(operation["responses"].items())
        if status != "200" and USUAL.get(status) != answer["description"]
    ]
    return "<br>".join(told)
