"""Objects that carry the JSON they were decoded from, because they are written back with all of it.

Their types have a field ``raw`` for it.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Return a function that decodes JSON and keeps it in ``raw``."""
    decode = msgspec.json.Decoder(kind).decode

    def decode_with_raw(data: bytes) -> T:
        return msgspec.structs.replace(decode(data), raw=bytes(data))

    return decode_with_raw
