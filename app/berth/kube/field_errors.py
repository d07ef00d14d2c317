"""Errors about fields, in Kubernetes' words: a function per reason of its ``field.Error``.

The API server uses them in a 422, kube-scheduler about its configuration.
"""

import json
from collections.abc import Iterable
from typing import Any

import msgspec


class FieldError(msgspec.Struct, frozen=True):
    """What the API server calls a cause; ``str()`` is a line of its message.

    ``reason`` is one of ``FieldValueRequired``, ``FieldValueInvalid``, ``FieldValueNotSupported``,
    ``FieldValueNotFound``, ``FieldValueForbidden``, ``FieldValueDuplicate``,
    ``FieldValueTooLong``, ``FieldValueTooMany``; ``message`` is what follows the field, e.g.
    ``Required value`` or ``Invalid value: "-1": must be greater than or equal to 0``.
    """

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", _message("Required value", detail))


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(
        path, "FieldValueInvalid", _message(f"Invalid value: {quoted(value)}", detail)
    )


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """*supported* in the order the API server lists them."""
    listed = ", ".join(quoted(value) for value in supported)
    message = f"Unsupported value: {quoted(value)}: supported values: {listed}"
    return FieldError(path, "FieldValueNotSupported", message)


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(
        path, "FieldValueDuplicate", _message(f"Duplicate value: {quoted(value)}", detail)
    )


def not_found(path: str, value: Any) -> FieldError:
    return FieldError(path, "FieldValueNotFound", f"Not found: {quoted(value)}")


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}")


def too_long(path: str, limit: int) -> FieldError:
    """*limit* in bytes."""
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    message = f"Too many: {count}: must have at most {limit} items"
    return FieldError(path, "FieldValueTooMany", message)


def quoted(value: Any) -> str:
    """Write *value* as the API server shows it: JSON, the names of fields as in the API.

    What JSON does not know (a Duration) is as it writes itself.
    """
    if not isinstance(value, str | int | float | list | dict | tuple | msgspec.Struct | None):
        return str(value)
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))


def _message(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


def join(path: str, *steps: str | int) -> str:
    """Append fields and list indices to a field path: ``profiles[0].plugins``."""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path
