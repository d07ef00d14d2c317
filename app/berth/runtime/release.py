"""The version of berth, and the releases of Kubernetes that it can be like."""

from dataclasses import dataclass
from importlib import metadata
from typing import Final, Self

DISTRIBUTION: Final = "berth-scheduler"
"""The name on the package index; the package and the command are ``berth``."""

RELEASES: Final = ("1.36", "1.37")
"""Of Kubernetes, oldest first. berth can emulate each; 1.36 is 1.36.2, to the last byte."""
RELEASE: Final = RELEASES[-1]
"""What berth is like unless it is told otherwise."""
PATCHES: Final = {"1.36": "1.36.2", "1.37": "1.37.0"}
"""Which version of a release berth is like."""


def version() -> str:
    """Return the version of berth that is installed."""
    return metadata.version(DISTRIBUTION)


def previous(release: str) -> str:
    """Return the minor release before one."""
    major, minor = release.split(".")
    return f"{major}.{int(minor) - 1}"


def _key(release: str) -> tuple[int, int]:
    major, minor = release.split(".")
    return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What no feature gate controls and what not every release does.

    It is declared once, beside the rule that it changes, and asked for as a gate is::

        COUNTS_IMAGE_VOLUMES = Behaviour("1.37", "N3.3", "Image volumes count as containers do.")
        if COUNTS_IMAGE_VOLUMES in handle.features: ...
    """

    since: str
    """The release that came with it."""
    section: str
    """Of the specification of that release."""
    text: str
    """A sentence for users: what the release does and the one before does not."""


@dataclass(frozen=True, slots=True)
class EffectiveVersion:
    """Which release to be like, as ``--emulated-version`` and ``--min-compatibility-version`` say.

    kube-scheduler returns to an earlier release's feature gates only; berth returns to all that
    can be observed of it (1.37 spec N1.2, "exact switch").
    """

    emulation: str = RELEASE
    min_compatibility: str = previous(RELEASE)

    @classmethod
    def of(cls, emulation: str = "", min_compatibility: str = "") -> Self:
        """Return the version of flags, each "" if it was not given.

        Raises ValueError, which names the flag and the value.
        """
        emulation = emulation or RELEASE
        if emulation not in RELEASES:
            known = " or ".join(RELEASES)
            raise ValueError(f"--emulated-version {emulation!r}: berth can be like {known}")
        oldest = min_compatibility or previous(emulation)
        if _key(oldest) > _key(emulation):
            raise ValueError(
                f"--min-compatibility-version {oldest!r} must not be above the emulated version"
                f" {emulation}"
            )
        return cls(emulation, oldest)

    def has(self, behaviour: Behaviour) -> bool:
        """Tell whether this release behaves so."""
        return self.is_since(behaviour.since)

    def is_since(self, release: str) -> bool:
        """Tell whether this release is *release* or a later one."""
        return _key(self.emulation) >= _key(release)

    def is_compatible_since(self, release: str) -> bool:
        """Tell whether nothing older than *release* has to be compatible."""
        return _key(self.min_compatibility) >= _key(release)


LATEST: Final = EffectiveVersion()
