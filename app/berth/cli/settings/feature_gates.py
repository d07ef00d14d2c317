"""Changes of a configuration by ``--feature-gates``."""

import logging
from collections.abc import Mapping

from berth.scheduler.config.feature_gates import effective_gates, without_effect
from berth.scheduler.config.types import KubeSchedulerConfiguration

log = logging.getLogger(__name__)


def with_gates(
    config: KubeSchedulerConfiguration, *, gates: Mapping[str, bool]
) -> KubeSchedulerConfiguration:
    """Return *config* with *gates*, which win over its own. Raises ConfigError."""
    given = {**config.feature_gates, **gates}
    effective_gates(given)
    warn_of_gates_without_effect(given)
    return config.model_copy(update={"feature_gates": given})


def warn_of_gates_without_effect(given: Mapping[str, bool]) -> None:
    """Log the gates of other components, if *given* turns any."""
    if names := without_effect(given):
        log.warning("feature gates that have no effect in berth", extra={"gates": names})
