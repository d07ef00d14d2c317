"""Durations in Go's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.duration import Duration

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds", "written"),
    [
        pytest.param("15s", 15_000_000_000, "15s", id="seconds"),
        pytest.param("1m30s", 90_000_000_000, "1m30s", id="minutes and seconds"),
        pytest.param("90s", 90_000_000_000, "1m30s", id="seconds become minutes"),
        pytest.param("600s", 600_000_000_000, "10m0s", id="whole minutes keep their seconds"),
        pytest.param("1h", HOUR, "1h0m0s", id="whole hours keep both"),
        pytest.param("1.5h", HOUR * 3 // 2, "1h30m0s", id="fractions of hours"),
        pytest.param("30s1m", 90_000_000_000, "1m30s", id="any order"),
        pytest.param("1s1s", 2_000_000_000, "2s", id="a unit may come twice"),
        pytest.param("0", 0, "0s", id="zero needs no unit"),
        pytest.param("-0", 0, "0s", id="zero with a sign"),
        pytest.param("+5s", 5_000_000_000, "5s", id="plus"),
        pytest.param("-1.5s", -1_500_000_000, "-1.5s", id="minus"),
        pytest.param(".5s", 500_000_000, "500ms", id="no digit before the point"),
        pytest.param("5.s", 5_000_000_000, "5s", id="no digit after the point"),
        pytest.param("1500us", 1_500_000, "1.5ms", id="microseconds"),
        pytest.param("1.5µs", 1_500, "1.5µs", id="the micro sign"),
        pytest.param("1.5μs", 1_500, "1.5µs", id="the Greek letter"),
        pytest.param("7ns", 7, "7ns", id="nanoseconds"),
        pytest.param("1.0000000019s", 1_000_000_001, "1.000000001s", id="finer is dropped"),
        pytest.param("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s", id="least"),
    ],
)
def test_go_durations(text: str, nanoseconds: int, written: str) -> None:
    parsed = Duration.parse(text)
    assert (parsed, str(parsed)) == (Duration(nanoseconds), written)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'time: invalid duration ""', id="nothing"),
        pytest.param("-", 'time: invalid duration "-"', id="only a sign"),
        pytest.param("soon", 'time: invalid duration "soon"', id="no number"),
        pytest.param(".s", 'time: invalid duration ".s"', id="only a point"),
        pytest.param("--5s", 'time: invalid duration "--5s"', id="two signs"),
        pytest.param(" 5s", 'time: invalid duration " 5s"', id="a blank"),
        pytest.param("5", 'time: missing unit in duration "5"', id="no unit"),
        pytest.param("1m5", 'time: missing unit in duration "1m5"', id="no unit at the end"),
        pytest.param("1d", 'time: unknown unit "d" in duration "1d"', id="days"),
        pytest.param("5 s", 'time: unknown unit " s" in duration "5 s"', id="a blank inside"),
        pytest.param("2562048h", 'time: invalid duration "2562048h"', id="more than 64 bits"),
        pytest.param(
            "9" * 5000 + "s", f'time: invalid duration "{"9" * 5000}s"', id="more than Python reads"
        ),
    ],
)
def test_what_is_no_duration(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="time:") as error:
        Duration.parse(text)
    assert str(error.value) == message


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_writing_loses_nothing(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == Duration(nanoseconds)


@given(st.text())
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        parsed = Duration.parse(text)
    except ValueError:
        return
    assert Duration.parse(str(parsed)) == parsed


def test_seconds() -> None:
    assert (Duration.of(0.25).nanoseconds, Duration.parse("1m0.5s").seconds) == (250_000_000, 60.5)


def test_a_duration_has_64_bits() -> None:
    with pytest.raises(ValueError, match="out of range"):
        Duration(2**63)
