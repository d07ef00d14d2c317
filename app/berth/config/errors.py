"""What is wrong with a configuration, in the words Kubernetes uses for fields."""

import json
from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from berth.errors import UserError
from berth.redaction import redacted, redacted_object


class ConfigError(UserError, ValueError):
    """A configuration that cannot be used; ``str()`` has one line per problem."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.source = source
        """Where the configuration came from: a file name, or what else names it."""
        self.problems = tuple(problems)
        """Each names the field and its value; *source* is not repeated in them."""
        super().__init__("\n".join(f"{source}: {problem}" for problem in self.problems))


def invalid(path: str, value: object, detail: str) -> str:
    """Say that *value* at *path* is not allowed, and why."""
    return f"{path}: Invalid value: {shown(value, path)}: {redacted(detail)}"


def required(path: str) -> str:
    """Say that the field at *path* must be set."""
    return f"{path}: Required value"


def duplicate(path: str, value: object) -> str:
    """Say that *value* at *path* was there before."""
    return f"{path}: Duplicate value: {shown(value, path)}"


def not_found(path: str, value: object) -> str:
    """Say that nothing has the name *value* that *path* refers to."""
    return f"{path}: Not found: {shown(value, path)}"


def forbidden(path: str, detail: str) -> str:
    """Say that what is at *path* would be good, but cannot be had now."""
    return f"{path}: Forbidden: {detail}"


def unknown_field(path: str) -> str:
    """Say that nobody reads the field at *path*."""
    return f'strict decoding error: unknown field "{path}"'


def duplicate_field(path: str) -> str:
    """Say that the file has the field at *path* twice."""
    return f'strict decoding error: duplicate field "{path}"'


def shown(value: object, path: str = "") -> str:
    """Write *value*, that of the field at *path*, as JSON and without secrets.

    What JSON does not know (a Duration) is as it writes itself.
    """
    if isinstance(value, str | int | float | list | dict | tuple | None):
        shown = redacted_object(value, name=path)
        return json.dumps(shown, default=str, ensure_ascii=False)
    return str(value)


def join(path: str, *steps: str | int) -> str:
    """Append fields and list indices to a field path: ``profiles[0].plugins``."""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


def model_problems(error: ValidationError, path: str = "") -> list[str]:
    """Translate pydantic's findings about the value at *path*."""
    details = error.errors(include_url=False)
    # Not a finding but a consequence: a default that follows a field which is itself wrong.
    return [_problem(d, path) for d in details if d["type"] != "default_factory_not_called"]


def _problem(detail: ErrorDetails, path: str) -> str:
    where = join(path, *detail["loc"])
    match detail["type"]:
        case "extra_forbidden":
            return unknown_field(where)
        case "missing":
            return required(where)
        case "literal_error" | "enum":
            expected = str(detail.get("ctx", {}).get("expected", "")).replace("'", '"')
            value = shown(detail["input"], where)
            return f"{where}: Unsupported value: {value}: supported: {expected}"
        case "value_error":
            return invalid(where, detail["input"], str(detail["ctx"]["error"]))
        case _:
            return invalid(where, detail["input"], detail["msg"][0].lower() + detail["msg"][1:])
