"""Data files of packages: what would be tables in code, as JSON beside it."""

from importlib.resources import files
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read(package: str, name: str, type_: type[T]) -> T:
    """Return what a file of *package* says, as *type_*."""
    return msgspec.json.decode(files(package).joinpath(name).read_bytes(), type=type_)
