"""The configurations that have a name: files of ``berth.scheduler.config.presets``."""

from importlib.resources import files
from typing import Final, Literal, TypeAlias, get_args

Preset: TypeAlias = Literal["default", "binpack", "spread"]
PRESETS: Final[tuple[str, ...]] = get_args(Preset)


def preset(name: str) -> bytes:
    """Return the text of one of :data:`PRESETS`; its one profile is ``default-scheduler``."""
    return files("berth.scheduler.config.presets").joinpath(f"{name}.yaml").read_bytes()
