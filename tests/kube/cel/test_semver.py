"""Versions by semver 2.0.0."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.cel.semver import normalized, parse_version

IN_ORDER = (
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.3",
    "1.10.0",
    "2.0.0",
)


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(IN_ORDER)))
def test_precedence(lower: str, higher: str) -> None:
    assert parse_version(lower) < parse_version(higher)


def test_build_metadata_does_not_count() -> None:
    assert parse_version("1.2.3+build.5") == parse_version("1.2.3")


@pytest.mark.parametrize(
    "text", ["1", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "v1.2.3", "1.2.3 ", ""]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="want major"):
        parse_version(text)


@pytest.mark.parametrize("text", [f"1.{2**64}.0", f"1.0.0-{2**64}", "9" * 5000 + ".0.0"])
def test_numbers_have_64_bits(text: str) -> None:
    assert parse_version(f"1.{2**64 - 1}.0-{2**64 - 1}") > parse_version("1.2.0")
    with pytest.raises(ValueError, match=r"^version: number [0-9]{20,}: does not fit"):
        parse_version(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0" * 5000 + "7", "7.0.0"),
        ("v1", "1.0.0"),
        ("1.02", "1.2.0"),
        ("V1.2.3-rc.1", "1.2.3-rc.1"),
        ("1.2.3", "1.2.3"),
        ("nonsense", "nonsense"),
    ],
)
def test_normalizing(text: str, want: str) -> None:
    assert normalized(text) == want


@given(st.tuples(*[st.integers(0, 10**6)] * 3))
def test_writing_and_reading(parts: tuple[int, int, int]) -> None:
    text = "{}.{}.{}-rc.7".format(*parts)
    assert str(parse_version(text)) == text
