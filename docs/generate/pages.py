"""The generated pages and pictures: file in ``docs/``, function that returns its text."""

from collections.abc import Callable, Mapping
from typing import Final

from docs.generate import (
    cli,
    configuration,
    embedded_api,
    helm_values,
    http,
    lab,
    metrics,
    node_groups,
    plugin_api,
    releases,
    scenario,
)
from docs.generate.terminal import screenshots

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/cli.md": cli.page,
    "reference/configuration.md": configuration.page,
    "reference/embedded-api.md": embedded_api.page,
    "reference/helm-values.md": helm_values.page,
    "reference/http.md": http.page,
    "reference/lab.md": lab.page,
    "reference/metrics.md": metrics.page,
    "reference/node-groups.md": node_groups.page,
    "reference/plugin-api.md": plugin_api.page,
    "reference/releases.md": releases.page,
    "reference/scenario.md": scenario.page,
    **screenshots(),
}
