"""Errors of pydantic in a configuration, in the words of ``berth.scheduler.config.errors``."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from berth.kube.field_errors import join
from berth.scheduler.config.errors import invalid, required, shown, unknown_field


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
