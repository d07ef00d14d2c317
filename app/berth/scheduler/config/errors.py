"""Errors of configurations, in the words Kubernetes uses for fields."""

from collections.abc import Iterable

from berth.kube import field_errors
from berth.runtime.errors import UserError
from berth.runtime.redaction import redacted, redacted_object


class ConfigError(UserError, ValueError):
    """A configuration that cannot be used; ``str()`` has one line per problem."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.source = source
        """Where the configuration came from: a file name, or what else names it."""
        self.problems = tuple(problems)
        """Each names the field and its value; *source* is not repeated in them."""
        super().__init__("\n".join(f"{source}: {problem}" for problem in self.problems))


def invalid(path: str, value: object, detail: str) -> str:
    """Say that *value* at *path* is not allowed, and why; without secrets."""
    return str(field_errors.invalid(path, _without_secrets(value, path), redacted(detail)))


def required(path: str) -> str:
    """Say that the field at *path* must be set."""
    return str(field_errors.required(path))


def duplicate(path: str, value: object) -> str:
    """Say that *value* at *path* was there before."""
    return str(field_errors.duplicate(path, _without_secrets(value, path)))


def not_found(path: str, value: object) -> str:
    """Say that nothing has the name *value* that *path* refers to."""
    return str(field_errors.not_found(path, _without_secrets(value, path)))


def forbidden(path: str, detail: str) -> str:
    """Say that what is at *path* would be good, but cannot be had now."""
    return str(field_errors.forbidden(path, detail))


def unknown_field(path: str) -> str:
    """Say that there is no field *path*."""
    return f'strict decoding error: unknown field "{path}"'


def duplicate_field(path: str) -> str:
    """Say that the file has the field at *path* twice."""
    return f'strict decoding error: duplicate field "{path}"'


def shown(value: object, path: str = "") -> str:
    """Write *value*, that of the field at *path*, as JSON and without secrets."""
    return field_errors.quoted(_without_secrets(value, path))


def _without_secrets(value: object, path: str) -> object:
    if isinstance(value, str | int | float | list | dict | tuple | None):
        return redacted_object(value, name=path)
    return value
