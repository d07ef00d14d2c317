"""The generated pages: file in ``docs/``, function that returns its text."""

from collections.abc import Callable, Mapping
from typing import Final

from docs.generate import (
    cli,
    configuration,
    embedded_api,
    helm_values,
    http,
    metrics,
)

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/cli.md": cli.page,
    "reference/configuration.md": configuration.page,
    "reference/embedded-api.md": embedded_api.page,
    "reference/helm-values.md": helm_values.page,
    "reference/http.md": http.page,
    "reference/metrics.md": metrics.page,
}
