"""CEL selectors: what an expression sees of a device, and what it answers."""

import pytest

from berth.kube.cel.selector_error import SelectorError
from berth.kube.cel.selectors import DeviceView, Expression, compile_expression
from berth.kube.objects.devices import Device, DeviceAttribute
from tests.device_builders import DRIVER, device, version

GPU = device(
    "gpu-0",
    attributes={
        "model": "a100",
        "slot": 2,
        "healthy": True,
        "driverVersion": version("1.10.0"),
        "resource.example.com/pcieRoot": "root0",
    },
    capacity={"memory": "40Gi"},
)


def matches(expression: str, of: Device = GPU) -> bool:
    return Expression(expression).matches(DeviceView.of(DRIVER, of))


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param('device.driver == "gpu.example.com"', True, id="the driver"),
        pytest.param(
            'device.attributes["gpu.example.com"].model in ["a100", "h100"]',
            True,
            id="a bare name belongs to the driver's domain",
        ),
        pytest.param(
            'device.attributes["resource.example.com"].pcieRoot == "root0"',
            True,
            id="a name of another domain",
        ),
        pytest.param('"numa" in device.attributes["gpu.example.com"]', False, id="is it there"),
        pytest.param('has(device.attributes["gpu.example.com"].numa)', False, id="has"),
        pytest.param(
            'device.attributes["gpu.example.com"].?numa.orValue(7) < 2', False, id="optionals"
        ),
        pytest.param(
            'cel.bind(a, device.attributes["gpu.example.com"], a.model == "h100" || a.slot == 2)',
            True,
            id="cel.bind",
        ),
        pytest.param(
            'device.attributes["gpu.example.com"].model.matches("^a[0-9]+$")', True, id="matches"
        ),
        pytest.param('device.attributes.exists(d, d == "gpu.example.com")', True, id="exists"),
        pytest.param(
            'device.attributes["gpu.example.com"].model.upperAscii() == "A100"',
            True,
            id="the strings extension",
        ),
        pytest.param("sets.contains([1, 2], [1])", True, id="the sets extension"),
        pytest.param("device.allowMultipleAllocations", False, id="sharing is off unless said"),
        pytest.param(
            'has(device.attributes["other.com"].x)', False, id="an unknown domain is empty"
        ),
        pytest.param(
            'device.attributes["other.com"].?x.orValue(1) == 1', True, id="and so has no values"
        ),
        pytest.param('size(device.capacity["other.com"]) == 0', True, id="also of capacities"),
        pytest.param('"other.com" in device.attributes', False, id="and yet it is not there"),
        pytest.param(
            'device.attributes["gpu.example.com"].slot == "2"', False, id="types are not mixed up"
        ),
    ],
)
def test_an_expression_says_yes_or_no(expression: str, want: bool) -> None:
    assert matches(expression) is want


MEMORY = 'device.capacity["gpu.example.com"].memory'
VERSION = 'device.attributes["gpu.example.com"].driverVersion'


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f'{MEMORY}.compareTo(quantity("40960Mi")) == 0', id="compareTo"),
        pytest.param(f'{MEMORY} == quantity("40960Mi")', id="equal amounts are equal"),
        pytest.param(f'{MEMORY}.isGreaterThan(quantity("24Gi"))', id="isGreaterThan"),
        pytest.param(f'{MEMORY}.isLessThan(quantity("41Gi"))', id="isLessThan"),
        pytest.param(f"{MEMORY}.sign() == 1", id="sign"),
        pytest.param('quantity("2").add(quantity("500m")) == quantity("2.5")', id="add"),
        pytest.param('quantity("2").sub(1).add(1).sub(quantity("1")) == quantity("1")', id="sub"),
        pytest.param('quantity("3").asInteger() == 3', id="asInteger"),
        pytest.param('!quantity("1500m").isInteger()', id="isInteger"),
        pytest.param('quantity("1500m").asApproximateFloat() == 1.5', id="asApproximateFloat"),
        pytest.param('isQuantity("1Gi") && !isQuantity("1Qi")', id="isQuantity"),
        pytest.param(f'{VERSION}.isGreaterThan(semver("1.2.3"))', id="versions are not strings"),
        pytest.param(f'{VERSION}.compareTo(semver("1.10.0-rc.1")) == 1', id="pre-releases"),
        pytest.param(f"{VERSION}.minor() == 10", id="parts of a version"),
        pytest.param('semver("v1.2", true) == semver("1.2.0")', id="normalising"),
        pytest.param('isSemver("1.2.3") && !isSemver("1.2")', id="isSemver"),
        pytest.param('isSemver("1.2", true)', id="isSemver after normalising"),
    ],
)
def test_kubernetes_own_functions(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(
            'device.attributes["gpu.example.com"].unknown == "x"',
            "CEL runtime error: no such key: unknown",
            id="an attribute that is not there",
        ),
        pytest.param(
            'device.attributes["other.com"].x == 1',
            "CEL runtime error: no such key: x",
            id="the same in a domain that is not there",
        ),
        pytest.param(
            'device.attributes["gpu.example.com"].slot.startsWith("x")',
            "CEL runtime error: no such overload",
            id="an attribute of another type",
        ),
        pytest.param(
            f'{MEMORY}.isLessThan(semver("1.0.0"))',
            "CEL runtime error: no such overload: not a quantity",
            id="a quantity is no version",
        ),
        pytest.param(
            'device.attributes["gpu.example.com"].model',
            "CEL runtime error: CEL result of type string could not be converted to bool:"
            " unsupported native conversion from string to 'bool'",
            id="an answer that is no yes or no",
        ),
        pytest.param(
            'dyn(device.attributes["gpu.example.com"].?model)',
            "CEL runtime error: CEL result of type optional_type could not be converted to bool:"
            " unsupported native conversion from optional_type to 'bool'",
            id="an answer that may be none",
        ),
        pytest.param("1 / 0 == 1", "CEL runtime error: divide by zero", id="arithmetic"),
        pytest.param(
            "1 + 1",
            "CEL compile error: must evaluate to bool or the unknown type, not int",
            id="an expression that can never be a yes or no",
        ),
        pytest.param(
            "a.b",
            "CEL compile error: compilation failed: ERROR: <input>:1:1: undeclared reference to"
            " 'a' (in container '')\n | a.b\n | ^",
            id="a chain that begins with an unknown name",
        ),
        pytest.param(
            "foo()",
            "CEL compile error: compilation failed: ERROR: <input>:1:4: undeclared reference to"
            " 'foo' (in container '')\n | foo()\n | ...^",
            id="an unknown function",
        ),
    ],
)
def test_failures_are_worded(expression: str, want: str) -> None:
    with pytest.raises(SelectorError) as failure:
        matches(expression)
    assert str(failure.value) == want


def test_a_failure_that_does_not_matter_is_none() -> None:
    assert matches('device.attributes["gpu.example.com"].unknown == "x" || true')


def test_an_expression_that_needs_an_empty_domain_leaves_none_behind() -> None:
    view = DeviceView.of(DRIVER, GPU)
    assert not Expression('has(device.attributes["other.com"].x)').matches(view)
    assert not Expression('"other.com" in device.attributes').matches(view)


@pytest.mark.parametrize(
    ("attribute", "want"),
    [
        pytest.param(
            version("1.2"),
            "CEL runtime error: attribute a: version '1.2': want major.minor.patch as semver 2.0.0"
            " has it",
            id="not a version",
        ),
        pytest.param(
            DeviceAttribute(),
            "CEL runtime error: attribute a: unsupported attribute value",
            id="unknown type",
        ),
    ],
)
def test_a_device_that_cannot_be_understood(attribute: DeviceAttribute, want: str) -> None:
    with pytest.raises(SelectorError) as failure:
        DeviceView.of(DRIVER, device("gpu-0", attributes={"a": attribute}))
    assert str(failure.value) == want


def test_compiled_expressions_are_kept_and_so_are_failures() -> None:
    assert compile_expression("true") is compile_expression("true")
    assert isinstance(compile_expression("1 +"), SelectorError)
    assert compile_expression("1 +") is compile_expression("1 +")
