"""Objects of which exactly one field says what they are."""

from collections.abc import Iterable

from pydantic import BaseModel
from pydantic.alias_generators import to_camel


def exactly_one(model: BaseModel, names: Iterable[str], *, or_none: bool = False) -> str:
    """Return which of the fields *names* is set, "" for none; ValueError unless it is one.

    With *or_none* none may be.
    """
    given = [to_camel(name) for name in names if name in model.model_fields_set]
    if len(given) == 1:
        return next(name for name in names if name in model.model_fields_set)
    if not given and or_none:
        return ""
    wanted = ", ".join(map(to_camel, names))
    raise ValueError(
        f"{'at most' if or_none else 'exactly'} one of {wanted} is needed,"
        f" got {' and '.join(given) or 'none'}"
    )
