"""The order of versions (``apimachinery/pkg/version``)."""

import re
from typing import Final

_VERSION: Final = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return what versions are sorted by, the preferred one first: ``v10``, ``v2``, ``v2beta1``."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, 0, 0, version)
    rank = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (rank, -int(found[1]), -int(found[3] or 0), version)
