"""The effective configuration."""

from berth.runtime.clock import rfc3339
from berth.scheduler.config.configz import to_shown
from berth.scheduler.config.load import load
from berth.scheduler.config.presets import PRESETS, preset
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import Registry, args_models
from berth.scheduler.profile.score_weights import Weights, score_weights
from berth.service.server.scheduler.debug.models import EffectiveConfiguration


class Configurations:
    """Tells configurations; remembers what it has made out of the presets."""

    def __init__(self) -> None:
        self._registry: Registry | None = None
        self._presets: dict[str, Weights] = {}

    def effective(
        self,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        *,
        generation: int,
        loaded_at: float,
    ) -> EffectiveConfiguration:
        """Tell *config*, the *generation*-th one, in force since *loaded_at* (seconds since 1970).

        *registry* has the plugins there are.
        """
        if registry is not self._registry:
            self._registry, models = registry, args_models(registry)
            self._presets = {
                name: score_weights(load(preset(name), source=name, args_models=models), registry)
                for name in PRESETS
            }
        return EffectiveConfiguration(
            generation=generation,
            loaded_at=rfc3339(loaded_at),
            configuration=to_shown(config),
            score_weights=score_weights(config, registry),
            presets=self._presets,
        )
