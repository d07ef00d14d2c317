"""``docs/reference/scenario.md``: the fields of scenario files, from their models."""

from berth.tools.up.scenario.types import Scenario
from docs.generate import markdown
from docs.generate.configuration import models

INTRODUCTION = """\
`berth up --scenario` takes one `Scenario` of the API version `berth.dev/v1alpha1`.
[Scenarios](../embedded.md#scenarios) explains how to use them, and `examples/scenarios` has
examples. Durations are written as in Go, such as `90s` or `1h30m`."""


def page() -> str:
    return markdown.page(
        "Scenario files",
        INTRODUCTION,
        *models(Scenario, set(), "##"),
        source="the models of berth.tools.up.scenario",
    )
