"""Work of a request that takes long, done before its step on the event loop: YAML, CEL."""

from collections.abc import Sequence
from typing import Final

import msgspec

from berth.cluster import errors
from berth.cluster.access.users import User
from berth.cluster.http.negotiation import YAML, as_json
from berth.cluster.strategies.selectors_to_check import Unchecked
from berth.cluster.work_process import (
    Compiled,
    Job,
    Selector,
    WorkError,
    WorkProcess,
    WorkRefusedError,
)
from berth.kube import documents
from berth.kube.cel.selector_error import CompileError

QUICK_YAML: Final = 4 * 1024
"""Bytes that are converted faster than a process is told to."""
SHORT_YAML: Final = 64 * 1024
"""Bytes that take a quarter of a second; longer ones do not keep them waiting."""
MOST_YAML: Final = 1024 * 1024
"""Bytes of a body that is YAML, which takes three seconds per megabyte. JSON may be longer."""


class LongWork:
    """Two processes, one for what is done soon. :meth:`close` it once."""

    def __init__(self) -> None:
        self._soon = WorkProcess()
        self._later = WorkProcess()

    async def yaml_as_json(self, content: bytes, user: User) -> bytes:
        """Return the JSON of a body; 400 when it is no YAML, 413 when it is too long."""
        if len(content) <= QUICK_YAML:
            return as_json(content, YAML)
        if len(content) > MOST_YAML:
            raise errors.too_large(f"limit is {MOST_YAML} for YAML")
        process = self._soon if len(content) <= SHORT_YAML else self._later
        try:
            return await process.do(Job.YAML, content, user)
        except WorkRefusedError as exc:
            raise errors.bad_request(f"error converting YAML to JSON: yaml: {exc}") from exc
        except WorkError as exc:
            raise errors.internal(f"converting YAML to JSON: {exc}") from exc

    async def repeated_keys(self, content: bytes, user: User) -> list[str]:
        """Return what is said of keys that objects have twice in a body that was YAML."""
        if len(content) <= QUICK_YAML:
            return documents.repeated_keys(content)
        process = self._soon if len(content) <= SHORT_YAML else self._later
        try:
            answer = await process.do(Job.REPEATED_KEYS, content, user)
        except WorkError as exc:
            raise errors.internal(f"reading YAML: {exc}") from exc
        return msgspec.json.decode(answer, type=list[str])

    async def compile(self, unchecked: Sequence[Unchecked], user: User) -> None:
        """Compile selectors, and keep what comes of it."""
        for each in unchecked:
            job = Selector(each.source, tuple(each.features))
            try:
                answer = await self._soon.do(Job.SELECTOR, msgspec.msgpack.encode(job), user)
            except WorkRefusedError as exc:
                compiled = Compiled(detail=f"compilation failed: {exc}")
            except WorkError as exc:
                raise errors.internal(f"compiling CEL: {exc}") from exc
            else:
                compiled = msgspec.msgpack.decode(answer, type=Compiled)
            _keep(each, compiled)

    async def close(self) -> None:
        """End the processes."""
        await self._soon.close()
        await self._later.close()


def _keep(selector: Unchecked, compiled: Compiled) -> None:
    """Keep what came of compiling *selector*."""
    from berth.kube.cel.selectors import Expression, keep

    source, features = selector
    if compiled.detail:
        keep(source, features, CompileError(compiled.detail))
        return
    keep(
        source,
        features,
        Expression.of_packed(
            source,
            features,
            compiled.program,
            size=compiled.size,
            cost=compiled.cost,
            work=compiled.work,
        ),
    )
