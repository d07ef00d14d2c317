"""``includes``, which asks an attribute of a device whatever it is: a list or one value."""

from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel.device_type import MAX_ATTRIBUTE_VALUES
from berth.kube.cel.overloads import function, overload

NAME: Final = "includes"


def _includes(target: Any, value: Any) -> bool:
    if not isinstance(target, list):
        return _is_equal(target, value)
    is_included = any(_is_equal(item, value) for item in target[:MAX_ATTRIBUTE_VALUES])
    if not is_included and len(target) > MAX_ATTRIBUTE_VALUES:
        raise ValueError(
            f"'{NAME}' function cannot be applied to lists longer than {MAX_ATTRIBUTE_VALUES}"
            f" values"
        )
    return is_included


def _is_equal(one: Any, other: Any) -> bool:
    """Compare as CEL does: numbers by value, and true is not 1."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def declaration() -> cel.FunctionDecl:
    """Return the function, for an environment.

    In Kubernetes it takes values of any type. The library finds the implementation by the types
    that the values have, so each pair is declared.
    """
    type_ = cel.Type
    types = {
        "bool": type_.BOOL,
        "bytes": type_.BYTES,
        "double": type_.DOUBLE,
        "int": type_.INT,
        "list": type_.LIST,
        "map": type_.MAP,
        "string": type_.STRING,
        "uint": type_.UINT,
    }
    return function(
        NAME,
        *(
            overload(f"dra_includes_{one}_{other}", type_.BOOL, target, value, is_member=True)(
                _includes
            )
            for one, target in types.items()
            for other, value in types.items()
        ),
    )
