"""Quantities and versions in CEL, as Kubernetes offers them to device selectors.

The CEL library has no values of other people's types, so both are maps of one entry, which keeps
their types apart and makes equal ones equal: ``{"quantity": "<nano units>"}`` and
``{"semver": "<canonical version>"}``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel import addresses, lists
from berth.kube.cel.overloads import function, overload
from berth.kube.cel.semver import Version, normalized, parse_version
from berth.kube.objects import quantity
from berth.kube.objects.quantity import NANO

Value = dict[str, str]

_QUANTITY: Final = "quantity"
_SEMVER: Final = "semver"


def quantity_value(written: quantity.Quantity) -> Value:
    """Return a quantity for CEL; ``ValueError`` if it is none."""
    return _of_nanos(quantity.parse(written))


def semver_value(written: str) -> Value:
    """Return a version for CEL; ``ValueError`` if it is none."""
    return {_SEMVER: str(parse_version(written))}


def version_of(value: Any) -> str | None:
    """Return the version that a value of CEL is; None if it is none."""
    is_version = isinstance(value, Mapping) and value.keys() == {_SEMVER}
    return value[_SEMVER] if is_version else None


def _of_nanos(nanos: int) -> Value:
    return {_QUANTITY: str(nanos)}


def _nanos(value: Mapping[str, str]) -> int:
    try:
        return int(value[_QUANTITY])
    except KeyError:
        raise ValueError("no such overload: not a quantity") from None


def _version(value: Mapping[str, str]) -> Version:
    try:
        return parse_version(value[_SEMVER])
    except KeyError:
        raise ValueError("no such overload: not a version") from None


def _compare(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    if _QUANTITY in one:
        return _sign(_nanos(one) - _nanos(other))
    mine, theirs = _version(one), _version(other)
    return (mine > theirs) - (mine < theirs)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _as_integer(value: Mapping[str, str]) -> int:
    whole, rest = divmod(_nanos(value), NANO)
    if rest or not -(2**63) <= whole < 2**63:
        raise ValueError("cannot convert value to integer")
    return whole


def _is_integer(value: Mapping[str, str]) -> bool:
    try:
        _as_integer(value)
    except ValueError:
        return False
    return True


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


def _is_semver(text: str) -> bool:
    try:
        parse_version(text)
    except ValueError:
        return False
    return True


def declarations() -> list[cel.FunctionDecl]:
    """Return the functions, for an environment."""
    text, integer, yes_no = cel.Type.STRING, cel.Type.INT, cel.Type.BOOL
    value, real = cel.Type.MAP, cel.Type.DOUBLE

    def method(
        name: str, result: cel.Type, *parameters: cel.Type
    ) -> Callable[[Callable[..., Any]], cel.Overload]:
        return overload(name, result, value, *parameters, is_member=True)

    return [
        *lists.declarations(),
        *addresses.declarations(),
        function("quantity", overload("string_to_quantity", value, text)(quantity_value)),
        function("isQuantity", overload("is_quantity_string", yes_no, text)(_is_quantity)),
        function(
            "semver",
            overload("string_to_semver", value, text)(semver_value),
            overload("string_bool_to_semver", value, text, yes_no)(
                lambda written, normalize: semver_value(
                    normalized(written) if normalize else written
                )
            ),
        ),
        function(
            "isSemver",
            overload("is_semver_string", yes_no, text)(_is_semver),
            overload("is_semver_string_bool", yes_no, text, yes_no)(
                lambda written, normalize: _is_semver(normalized(written) if normalize else written)
            ),
        ),
        function("compareTo", method("compare_to", integer, value)(_compare)),
        function(
            "isGreaterThan",
            method("is_greater_than", yes_no, value)(lambda one, other: _compare(one, other) > 0),
        ),
        function(
            "isLessThan",
            method("is_less_than", yes_no, value)(lambda one, other: _compare(one, other) < 0),
        ),
        function("sign", method("quantity_sign", integer)(lambda one: _sign(_nanos(one)))),
        function("isInteger", method("quantity_is_integer", yes_no)(_is_integer)),
        function("asInteger", method("quantity_as_integer", integer)(_as_integer)),
        function(
            "asApproximateFloat",
            method("quantity_as_float", real)(lambda one: _nanos(one) / NANO),
        ),
        function(
            "add",
            method("quantity_add", value, value)(
                lambda one, other: _of_nanos(_nanos(one) + _nanos(other))
            ),
            method("quantity_add_int", value, integer)(
                lambda one, number: _of_nanos(_nanos(one) + number * NANO)
            ),
        ),
        function(
            "sub",
            method("quantity_sub", value, value)(
                lambda one, other: _of_nanos(_nanos(one) - _nanos(other))
            ),
            method("quantity_sub_int", value, integer)(
                lambda one, number: _of_nanos(_nanos(one) - number * NANO)
            ),
        ),
        function("major", method("semver_major", integer)(lambda one: _version(one).major)),
        function("minor", method("semver_minor", integer)(lambda one: _version(one).minor)),
        function("patch", method("semver_patch", integer)(lambda one: _version(one).patch)),
    ]
