"""The words of a 422: one function per reason of the API server's ``field.Error``."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from berth.cluster.resources import FieldError


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", _message("Required value", detail))


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {detail}")


def not_supported(path: str, value: str, supported: Iterable[str]) -> FieldError:
    """*supported* in the order the API server lists them."""
    listed = ", ".join(quoted(each) for each in supported)
    message = f"Unsupported value: {quoted(value)}: supported values: {listed}"
    return FieldError(path, "FieldValueNotSupported", message)


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(
        path, "FieldValueDuplicate", _message(f"Duplicate value: {quoted(value)}", detail)
    )


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}")


def too_long(path: str, limit: int) -> FieldError:
    """*limit* in bytes."""
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    message = f"Too many: {count}: must have at most {limit} items"
    return FieldError(path, "FieldValueTooMany", message)


def quoted(value: Any) -> str:
    """Write *value* as the API server shows it: JSON, the names of fields as in the API."""
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))


def _message(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head
