"""What hostile expressions may do: they are stopped before they run, in the words of Kubernetes."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.kube.cel.selector_error import CompileError, SelectorError
from berth.kube.cel.selectors import (
    MAX_COST,
    MAX_LENGTH,
    DeviceView,
    Expression,
    compile_expression,
)
from berth.kube.objects.devices import Device
from tests.device_builders import DRIVER, device

EXCEEDED = "CEL runtime error: operation cancelled: actual cost limit exceeded"
GPU = device("gpu-0", attributes={"model": "a100", "slot": 2}, capacity={"memory": "40Gi"})
A = 'device.attributes["gpu.example.com"]'
BIG = '"' + "a" * 3000 + '"'


def matches(expression: str, of: Device = GPU) -> bool:
    return Expression(expression).matches(DeviceView.of(DRIVER, of))


def grown(first: str, step: str, times: int, result: str) -> str:
    """Bind v0 to *first*, then each to *step* with the one before for X; ask *result* of it."""
    body = result.replace("X", f"v{times}")
    for i in range(times, 0, -1):
        body = f"cel.bind(v{i}, {step.replace('X', f'v{i - 1}')}, {body})"
    return f"cel.bind(v0, {first}, {body})"


TEN = ", ".join("X" * 10)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(grown(BIG, "X + X + X + X", 15, "X.size() > 0"), id="strings"),
        pytest.param(
            f'{BIG}.replace("a", {BIG}).replace("a", "bbbbbbbbbb").size() > 0', id="replace"
        ),
        pytest.param(
            grown("[1, 2, 3]", TEN.replace(",", " +"), 12, "X.size() > 0"),
            id="lists that are joined",
        ),
        pytest.param(grown("[1]", f"[{TEN}]", 12, "X == X"), id="lists that share their parts"),
        pytest.param(grown("[1]", f"[{TEN}]", 9, "X.isSorted()"), id="given to Python"),
        pytest.param(grown("[1]", f"[{TEN}]", 9, "X in [X]"), id="in"),
        pytest.param(grown("[1]", f"[{TEN}]", 9, "sets.contains(X, X)"), id="sets"),
        pytest.param("lists.range(10000000).size() > 0", id="range"),
        pytest.param(
            f"cel.bind(r, lists.range(900000), [{', '.join('r' * 500)}].flatten().size() > 0)",
            id="flatten",
        ),
        pytest.param(
            f'cel.bind(s, {BIG}, "{"%s" * 1000}".format([{", ".join("s" * 1000)}]).size() > 0)',
            id="format",
        ),
        pytest.param(
            "lists.range(400).all(x, lists.range(400).all(y, true))",
            id="more turns than the library makes",
        ),
        pytest.param(
            "lists.range(100).all(x, lists.range(90).all(y, "
            + " && ".join(['quantity("1").isLessThan(quantity("2"))'] * 30)
            + "))",
            id="Python in a loop",
        ),
        pytest.param(
            "lists.range(900).all(z, "
            + " && ".join(f'!has(device.attributes["d{i}.x"].a)' for i in range(100))
            + ")",
            id="domains that have to be added",
        ),
        pytest.param(
            f'{BIG}.replace("a", "aaaaaaaaaa").findAll("a.*b|a").size() > 0', id="findAll"
        ),
    ],
)
def test_what_does_too_much_is_stopped(expression: str) -> None:
    with pytest.raises(SelectorError) as failure:
        matches(expression)
    assert str(failure.value) == EXCEEDED


@pytest.mark.parametrize(
    "expression",
    [
        f'{A}.model == "a100" && device.capacity["gpu.example.com"].memory'
        '.isGreaterThan(quantity("10Gi"))',
        f'{A}.model.matches("^(a|h)100") && {A}.exists(k, k.startsWith("mo"))',
        "device.attributes.all(d, device.attributes[d].all(k, k.size() < 40))",
        f'"gpu.example.com" in device.attributes && {A}.model in ["a100", "h100"]',
        f"has({A}.slot) && {A}.?numa.orValue(4) < 5",
        f'"a100,h100".split(",").exists(x, x == {A}.model)',
        " || ".join(f'device.attributes["d{i}.x"].?a.orValue(0) == 1' for i in range(20))
        + " || true",
    ],
)
def test_what_people_write_is_far_from_the_limit(expression: str) -> None:
    assert matches(expression)
    assert Expression(expression).cost < MAX_COST / 100


def test_regular_expressions_take_linear_time() -> None:
    text = "a" * 1000 + "!"
    assert matches(f'"{text}".find("^(a+)+$") == ""')
    assert not matches(f'"{text}".matches("^(a+)+$")')


def test_a_selector_has_a_length() -> None:
    fits = "true" + " " * (MAX_LENGTH - 4)
    assert matches(fits)
    with pytest.raises(CompileError, match="Too long: may not be more than 10240 bytes"):
        Expression(fits + " ")


def test_no_bound_holds_for_a_device_that_is_far_too_large() -> None:
    large = device("d", attributes={f"a{i}": "x" * 10_000 for i in range(100)})
    with pytest.raises(SelectorError) as failure:
        matches("true", large)
    assert str(failure.value) == EXCEEDED


PARTS = st.sampled_from(
    [
        *"()[]{},.?:!<>=&|+-%\"'01ax ",
        "device",
        "attributes",
        ".all(x, ",
        "cel.bind(",
        "has(",
        "\\",
        "\x00",
    ]
)


@settings(deadline=None)
@given(st.lists(PARTS, max_size=30).map("".join))
@example("\ud800")
@example("[" * 5000)
@example("device" + ".a" * 3000)
@example("-" * 9000 + "1 == 1")
def test_any_text_is_compiled_or_refused(text: str) -> None:
    compiled = compile_expression(text)
    if isinstance(compiled, CompileError):
        assert str(compiled).startswith("CEL compile error: ")
        return
    try:
        compiled.matches(DeviceView.of(DRIVER, GPU))
    except SelectorError as exc:
        assert str(exc).startswith("CEL runtime error: ")  # noqa: PT017 - a match is as good
