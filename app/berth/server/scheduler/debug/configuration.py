"""The effective configuration."""

from berth.clock import rfc3339
from berth.config.configz import to_shown
from berth.config.types import KubeSchedulerConfiguration
from berth.server.scheduler.debug.models import EffectiveConfiguration


def effective_configuration(
    config: KubeSchedulerConfiguration, *, generation: int, loaded_at: float
) -> EffectiveConfiguration:
    """Tell *config*, the *generation*-th one, in force since *loaded_at* (seconds since 1970)."""
    return EffectiveConfiguration(
        generation=generation, loaded_at=rfc3339(loaded_at), configuration=to_shown(config)
    )
