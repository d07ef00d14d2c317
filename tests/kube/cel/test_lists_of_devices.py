"""Attributes that are lists, with the feature gate DRAListTypeAttributes (spec G15.2)."""

import pytest

from berth.kube.cel.features import Features
from berth.kube.cel.selector_error import CompileError, SelectorError
from berth.kube.cel.selectors import DeviceView, Expression, compile_expression
from berth.kube.objects.devices import Device, DeviceAttribute
from tests.device_builders import DRIVER, device, version

ON = Features(list_type_attributes=True)
A = 'device.attributes["gpu.example.com"]'
GPU = device(
    "gpu-0",
    attributes={
        "model": "a100",
        "slot": 2,
        "healthy": True,
        "driverVersion": version("1.10.0"),
        "links": DeviceAttribute(strings=("nv0", "nv1")),
        "numa": DeviceAttribute(ints=(1, 3)),
        "ports": DeviceAttribute(bools=(True, True)),
        "apis": DeviceAttribute(versions=("1.0.0", "2.1.0")),
    },
)


def matches(expression: str, of: Device = GPU) -> bool:
    return Expression(expression, ON).matches(DeviceView.of(DRIVER, of, ON))


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(f'{A}.links.includes("nv1")', True, id="a list of strings has the value"),
        pytest.param(f'{A}.links.includes("nv2")', False, id="it has not"),
        pytest.param(f'{A}.model.includes("a100")', True, id="a single value is the value"),
        pytest.param(f'{A}.model.includes("a10")', False, id="it is another"),
        pytest.param(f"{A}.numa.includes(3)", True, id="integers"),
        pytest.param(f"{A}.numa.includes(3.0)", True, id="numbers are compared by value"),
        pytest.param(f'{A}.numa.includes("3")', False, id="text is no number"),
        pytest.param(f"{A}.ports.includes(false)", False, id="booleans"),
        pytest.param(f"{A}.ports.includes(1)", False, id="true is not 1"),
        pytest.param(f'{A}.apis.includes(semver("2.1.0"))', True, id="versions"),
        pytest.param(f'{A}.driverVersion.includes(semver("1.10.0"))', True, id="a version"),
        pytest.param(f'"nv0" in {A}.links', True, id="in"),
        pytest.param(f"{A}.numa[1] == 3", True, id="by index"),
        pytest.param(f"{A}.numa.exists(n, n > 2)", True, id="exists"),
        pytest.param(f"{A}.numa.all(n, n > 2)", False, id="all"),
        pytest.param(f"{A}.links.size() == 2", True, id="size"),
        pytest.param(
            f'{A}.apis.exists(v, v.isGreaterThan(semver("2.0.0")))', True, id="methods of elements"
        ),
    ],
)
def test_answers(expression: str, want: bool) -> None:
    assert matches(expression) is want


@pytest.mark.parametrize(
    ("length", "want"),
    [pytest.param(48, False, id="as long as allowed"), pytest.param(49, None, id="longer")],
)
def test_includes_reads_48_values(length: int, want: bool | None) -> None:
    long = device("d", attributes={"x": DeviceAttribute(ints=tuple(range(length)))})
    if want is not None:
        assert matches(f"{A}.x.includes(-1)", long) is want
        return
    assert matches(f"{A}.x.includes(47)", long)
    with pytest.raises(SelectorError) as failure:
        matches(f"{A}.x.includes(48)", long)
    assert "'includes' function cannot be applied to lists longer than 48 values" in str(
        failure.value
    )


def test_a_single_value_cannot_be_run_through() -> None:
    with pytest.raises(SelectorError):
        matches(f"{A}.model.exists(x, x == 1)")


def test_with_the_gate_off_there_is_no_includes_and_no_list() -> None:
    assert isinstance(compile_expression(f'{A}.model.includes("a100")'), CompileError)
    with pytest.raises(SelectorError) as failure:
        DeviceView.of(DRIVER, GPU)
    assert str(failure.value) == ("CEL runtime error: attribute links: unsupported attribute value")


def test_a_device_with_far_more_than_the_api_allows_is_not_asked() -> None:
    huge = device("d", attributes={"x": DeviceAttribute(strings=("a" * 1000,) * 1000)})
    with pytest.raises(SelectorError, match="actual cost limit exceeded"):
        matches("true", huge)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(
            f"{A}.x.exists(a, {A}.x.exists(b, {A}.x.exists(c, {A}.x.exists(d, a + b + c == d))))",
            id="four loops",
        ),
        pytest.param(
            f"[{', '.join('1' * 900)}].exists(a, {A}.x.all(b, {A}.x.includes(a)))",
            id="a function that is written in Python, in a loop",
        ),
    ],
)
def test_expressions_that_would_take_long_are_not_run(expression: str) -> None:
    compiled = compile_expression(expression, ON)
    assert isinstance(compiled, Expression)
    view = DeviceView.of(
        DRIVER, device("d", attributes={"x": DeviceAttribute(ints=tuple(range(48)))}), ON
    )
    with pytest.raises(SelectorError, match="actual cost limit exceeded"):
        compiled.matches(view)
