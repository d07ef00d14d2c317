"""The configuration that a process schedules by, and the plugins that it may enable."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from berth.scheduler.config.decode import document
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import Adjust, as_is, default_configuration, load
from berth.scheduler.config.presets import preset
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import check_profiles
from berth.service.plugin_sources import KnownPlugins

Loaded: TypeAlias = tuple[KubeSchedulerConfiguration, KnownPlugins]

COMMAND_LINE = "command line"


class ConfigurationSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a configuration comes from: a file, a preset, or neither; flags adjust it."""

    find_plugins: Callable[[], KnownPlugins]
    """Imports the plugins that may be enabled, besides those that a file names itself."""
    file: str = ""
    """The path of a file; empty: none."""
    preset: str | None = None
    """One of :mod:`berth.scheduler.config.presets`, where there is no file."""
    adjust: Adjust = as_is
    """Applies flags, before validation: a flag may correct what is wrong in a file."""

    def load(self, text: bytes | None = None) -> Loaded:
        """Read the configuration, and import the plugins; *text* is the file's if already read.

        Raises ConfigError, also when the file cannot be read.
        """
        source = self.file or COMMAND_LINE
        plugins = self.find_plugins()
        if text is None:
            text = self._text()
        if text is None:
            config = default_configuration(plugins.args_models, source=source, adjust=self.adjust)
        else:
            decoded = document(text, source=source)
            if self.file:
                plugins = plugins.referred_in(decoded.value, source=source)
            config = load(
                decoded,
                source=source,
                args_models=plugins.args_models,
                known_plugins=plugins.registry,
                aliases=plugins.aliases,
                adjust=self.adjust,
            )
        plugins.check_args(config, source=self.file)
        # The profiles are made much later, when it is no longer known where they came from.
        check_profiles(config, plugins.registry, source=source)
        return config, plugins

    def _text(self) -> bytes | None:
        if self.file:
            try:
                return Path(self.file).read_bytes()
            except OSError as error:
                raise ConfigError(self.file, [error.strerror or str(error)]) from error
        return None if self.preset is None else preset(self.preset)
