"""Refuses query parameters that an endpoint does not have: a misspelt filter filters nothing."""

from collections.abc import Iterator

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError


async def _only_known(request: Request) -> None:
    known = set(_names(request.scope["route"].dependant))
    unknown = sorted(request.query_params.keys() - known)
    if unknown:
        message = f"There is no such parameter; there are: {', '.join(sorted(known))}"
        raise RequestValidationError(
            [
                {
                    "type": "extra_forbidden",
                    "loc": ("query", name),
                    "msg": message,
                }
                for name in unknown
            ]
        )


def _names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for other in dependant.dependencies:
        yield from _names(other)


ONLY_KNOWN = Depends(_only_known)
"""Among the ``dependencies`` of a router: 422 for query parameters that an endpoint has not."""
