"""Quantities: every notation, rounding away from zero, and what is refused."""

import math
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod, ResourceRequirements
from berth.kube.objects.quantity import (
    MAX_INT64,
    NANO,
    Quantity,
    canonical,
    canonical_text,
    is_binary,
    milli_value,
    parse,
    value,
)

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
MULTIPLIERS = {suffix: Fraction(10) ** power for suffix, power in DECIMAL.items()} | {
    suffix: Fraction(1024**power) for suffix, power in BINARY.items()
}


@pytest.mark.parametrize(
    ("quantity", "nanos"),
    [
        pytest.param("0", 0, id="nothing"),
        pytest.param("500m", NANO // 2, id="thousandths"),
        pytest.param("1.5", 3 * NANO // 2, id="a fraction"),
        pytest.param(".5", NANO // 2, id="no digit before the point"),
        pytest.param("5.", 5 * NANO, id="no digit after the point"),
        pytest.param("+3", 3 * NANO, id="a plus sign"),
        pytest.param("-1", -NANO, id="a minus sign"),
        pytest.param("007", 7 * NANO, id="leading zeros"),
        pytest.param("1e3", 1000 * NANO, id="a small e is an exponent"),
        pytest.param("1E3", 1000 * NANO, id="a large E with digits is an exponent too"),
        pytest.param("1E", 10**18 * NANO, id="a large E alone is exa"),
        pytest.param("12e-1", 12 * NANO // 10, id="a negative exponent"),
        pytest.param("1e+2", 100 * NANO, id="an exponent with a plus sign"),
        pytest.param("1Ei", 2**60 * NANO, id="exbi"),
        pytest.param("0.5Ki", 512 * NANO, id="a binary suffix on a fraction"),
        pytest.param(" 2 ", 2 * NANO, id="space around it"),
        pytest.param(2, 2 * NANO, id="a bare integer"),
        pytest.param(0.1, NANO // 10, id="a bare float means what it says, not its binary value"),
        pytest.param(1e-7, 100, id="a bare small float"),
        pytest.param(1e18, 10**18 * NANO, id="a bare large float"),
        pytest.param("0.1n", 1, id="less than nano is one nano"),
        pytest.param("-0.1n", -1, id="and below zero one nano less"),
        pytest.param("1e-999999999", 1, id="a tiny exponent is one nano"),
        pytest.param("0e-999999999", 0, id="unless there is nothing"),
        pytest.param("8Ei", MAX_INT64 * NANO, id="more than int64 is the largest int64"),
        pytest.param("1e999999999", MAX_INT64 * NANO, id="however large the exponent"),
        pytest.param("-1e999999999", -MAX_INT64 * NANO, id="on either side"),
        pytest.param("0e999999999", 0, id="but nothing stays nothing"),
    ],
)
def test_parse(quantity: Quantity, nanos: int) -> None:
    assert parse(quantity) == nanos


@pytest.mark.parametrize(
    "quantity",
    [
        *("", " ", ".", "-", "Ki", "x", "1x", "1i", "1ki", "1mi", "1e", "1e1.5", "1.2.3", "1 Ki"),
        *("- 1", "--1", "0x1", "1_000", "1,5", "nan", "1kk", "1Kim", "1e3k", "\u0661"),
        *(math.inf, math.nan),
    ],
)
def test_nonsense_is_refused_by_name(quantity: Quantity) -> None:
    with pytest.raises(ValueError, match="want a number") as refusal:
        parse(quantity)
    assert str(refusal.value).startswith(f"quantity {quantity!r}: ")


@pytest.mark.parametrize("quantity", ["1" * 5000, "1e" + "9" * 5000], ids=["digits", "exponent"])
def test_endless_digits_are_refused(quantity: str) -> None:
    with pytest.raises(ValueError, match=r"^quantity '1\S{39}'\.\.\.: longer than 256 characters$"):
        parse(quantity)


@pytest.mark.parametrize(
    ("nanos", "units", "millis"),
    [
        pytest.param(0, 0, 0, id="nothing"),
        pytest.param(1, 1, 1, id="one nano is one of each"),
        pytest.param(-1, -1, -1, id="and below zero too"),
        pytest.param(NANO, 1, 1000, id="exact"),
        pytest.param(1_500_000_001, 2, 1501, id="rounded up"),
        pytest.param(-1_500_000_001, -2, -1501, id="rounded away from zero"),
        pytest.param(3 * MAX_INT64 * NANO, MAX_INT64, MAX_INT64, id="a sum beyond int64"),
        pytest.param(MAX_INT64 * NANO, MAX_INT64, MAX_INT64, id="beyond int64 in thousandths only"),
        pytest.param(-MAX_INT64 * NANO, -MAX_INT64, -MAX_INT64, id="beyond int64 below zero"),
    ],
)
def test_rounding(nanos: int, units: int, millis: int) -> None:
    assert (value(nanos), milli_value(nanos)) == (units, millis)


digits = st.text("0123456789", max_size=12)
numbers = st.tuples(st.sampled_from(["", "-", "+"]), digits, digits).filter(lambda n: n[1] or n[2])


@given(number=numbers, suffix=st.sampled_from(sorted(MULTIPLIERS)))
def test_parse_rounds_the_exact_fraction_away_from_zero(
    number: tuple[str, str, str], suffix: str
) -> None:
    sign, whole, fraction = number
    exact = Fraction(f"{whole or 0}.{fraction or 0}") * MULTIPLIERS[suffix] * NANO
    capped = min(math.ceil(exact), MAX_INT64 * NANO)
    assert parse(f"{sign}{whole}.{fraction}{suffix}") == (-capped if sign == "-" else capped)


@given(number=numbers, power=st.integers(-40, 40))
def test_an_exponent_is_a_power_of_ten(number: tuple[str, str, str], power: int) -> None:
    sign, whole, fraction = number
    exact = Fraction(f"{whole or 0}.{fraction or 0}") * Fraction(10) ** power * NANO
    capped = min(math.ceil(exact), MAX_INT64 * NANO)
    assert parse(f"{sign}{whole}.{fraction}e{power}") == (-capped if sign == "-" else capped)


@given(nanos=st.integers(0, MAX_INT64 * NANO // 1000))
def test_values_are_the_least_that_suffice(nanos: int) -> None:
    assert value(nanos) == math.ceil(Fraction(nanos, NANO))
    assert milli_value(nanos) == math.ceil(Fraction(nanos, NANO // 1000))


@given(amount=st.one_of(st.integers(0, MAX_INT64), st.floats(0, 1e9, allow_nan=False)))
def test_bare_json_numbers_mean_the_same_as_strings(amount: float) -> None:
    text = msgspec.json.encode(amount).decode()
    assert parse(msgspec.json.decode(text, type=Quantity)) == parse(text)


@pytest.mark.parametrize(
    ("resources", "complaint"),
    [
        pytest.param(
            b'{"requests": {"cpu": "1", "memory": "8Gb"}}',
            "requests[memory]: quantity '8Gb': want a number with an optional suffix, "
            "as in 500m, 1.5 or 2Gi - at `$.spec.containers[0].resources`",
            id="malformed",
        ),
        pytest.param(
            b'{"limits": {"cpu": "-1"}}',
            "limits[cpu]: quantity '-1': must not be negative "
            "- at `$.spec.containers[0].resources`",
            id="negative",
        ),
    ],
)
def test_decoding_refuses_bad_quantities(resources: bytes, complaint: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refusal:
        msgspec.json.decode(b'{"spec":{"containers":[{"resources":%s}]}}' % resources, type=Pod)
    assert str(refusal.value) == complaint


def test_decoding_keeps_quantities_as_written() -> None:
    written = b'{"requests":{"cpu":0.5,"memory":"1Gi","pods":3}}'
    decoded = msgspec.json.decode(written, type=ResourceRequirements)
    assert decoded.requests == {"cpu": 0.5, "memory": "1Gi", "pods": 3}
    assert msgspec.json.encode(decoded) == written


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param("0.1", "100m", id="a fraction is in thousandths"),
        pytest.param("1.5", "1500m", id="no fraction is left"),
        pytest.param("1000", "1k", id="the largest suffix"),
        pytest.param("1024", "1024", id="that fits"),
        pytest.param("1.5Gi", "1536Mi", id="powers of 1024"),
        pytest.param("512Ki", "512Ki", id="stay what they are"),
        pytest.param("5Ei", "5Ei", id="up to the last"),
        pytest.param("1n", "1n", id="down to the first"),
        pytest.param("0Gi", "0", id="nothing is in no unit"),
        pytest.param("-2Gi", "-2Gi", id="below zero too"),
    ],
)
def test_an_amount_is_written_as_kubernetes_does(written: str, want: str) -> None:
    assert canonical(parse(written), binary=is_binary(written)) == want


@pytest.mark.parametrize(
    ("written", "milli", "want"),
    [
        pytest.param("1000m", False, "1", id="thousandths"),
        pytest.param("1024Mi", False, "1Gi", id="powers of 1024"),
        pytest.param("1.0001Ki", False, "1024102400u", id="a fraction of a power of 1024"),
        pytest.param("1e9", False, "1e9", id="an exponent stays one"),
        pytest.param("1500e-3", False, "1500e-3", id="of thousands"),
        pytest.param("10e3", False, "10e3", id="not of tens"),
        pytest.param("1E", False, "1E", id="exa is no exponent"),
        pytest.param(0.5, False, "500m", id="a number"),
        pytest.param("1n", True, "1m", id="rounded up"),
        pytest.param("1n", False, "1n", id="or not"),
    ],
)
def test_a_quantity_is_rewritten_as_kubernetes_does(
    written: Quantity, milli: bool, want: str
) -> None:
    assert canonical_text(written, milli=milli) == want
