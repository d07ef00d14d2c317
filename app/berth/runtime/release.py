"""This release, and the release of kube-scheduler that it decides like."""

from importlib import metadata
from typing import Final

DISTRIBUTION: Final = "berth-scheduler"
"""The name on the package index; the package and the command are ``berth``."""

RELEASE: Final = "1.36"
"""Of kube-scheduler."""
PREVIOUS_RELEASE: Final = "1.35"


def version() -> str:
    """Return the version of berth that is installed."""
    return metadata.version(DISTRIBUTION)
