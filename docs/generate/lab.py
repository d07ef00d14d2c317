"""``docs/reference/lab.md``: the fields of Lab files, from their models."""

from berth.tools.lab.types import Lab
from docs.generate import markdown
from docs.generate.configuration import models

INTRODUCTION = """\
`berth lab` takes one `Lab` of the API version `berth.dev/v1alpha1`. [The policy lab](../lab.md)
explains how to use it, and `examples/lab` has an example. Durations are written as in Go, such as
`90s` or `1h30m`."""


def page() -> str:
    return markdown.page(
        "Lab files",
        INTRODUCTION,
        *models(Lab, set(), "##"),
        source="the models of berth.tools.lab.types",
    )
