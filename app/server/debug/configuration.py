"""What the scheduler was told to do."""

from typing import Any

from app.clock import rfc3339
from app.config.configz import to_object
from app.config.types import KubeSchedulerConfiguration
from app.server.debug.models import EffectiveConfiguration

_PRIVATE = "keyData"


def effective_configuration(
    config: KubeSchedulerConfiguration, *, generation: int, loaded_at: float
) -> EffectiveConfiguration:
    """Tell *config*, the *generation*-th one, in force since *loaded_at* (seconds since 1970)."""
    told: dict[str, Any] = to_object(config)
    for extender in told.get("extenders") or ():
        tls = extender.get("tlsConfig")
        if tls and _PRIVATE in tls:
            del tls[_PRIVATE]
    return EffectiveConfiguration(
        generation=generation, loaded_at=rfc3339(loaded_at), configuration=told
    )
