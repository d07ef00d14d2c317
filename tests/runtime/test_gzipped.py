"""gzip of others: what comes out, and what is refused before it takes memory."""

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime import gzipped
from berth.runtime.gzipped import GzipError, unpacked

MOST = 1 << 30


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=3), st.integers(0, 9))
def test_members_follow_each_other(parts: list[bytes], level: int) -> None:
    packed = b"".join(gzip.compress(part, level) for part in parts)
    assert unpacked(packed, most=MOST) == b"".join(parts)


@given(st.binary(min_size=1, max_size=200), st.data())
def test_what_is_cut_or_damaged_is_refused(content: bytes, data: st.DataObject) -> None:
    packed = gzip.compress(content)
    with pytest.raises(GzipError):
        unpacked(packed[: data.draw(st.integers(1, len(packed) - 1))], most=MOST)
    with pytest.raises(GzipError):
        unpacked(packed + b"x", most=MOST)


def test_a_small_file_does_not_stand_for_a_large_one() -> None:
    packed = bomb(128 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(GzipError, match=f"its {len(packed)} bytes stand for more than"):
            unpacked(packed, most=MOST)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * gzipped.UNSUSPICIOUS


def test_the_most_is_kept() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert len(unpacked(packed, most=1000)) == 1000
    with pytest.raises(GzipError, match="more than 999 bytes when unpacked"):
        unpacked(packed, most=999)
