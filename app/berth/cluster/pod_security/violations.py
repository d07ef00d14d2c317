"""Violations of a standard by a pod, in words."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from berth.cluster.resources import Object


class Violation(NamedTuple):
    """One check that failed."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check: TypeAlias = Callable[[Object, Object], Violation | None]
"""Evaluates the metadata and the spec of a pod, or of a template of pods."""


def containers_of(spec: Object) -> Iterator[Object]:
    """Yield the containers of all kinds, in the order that messages have."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def security_of(holder: Object) -> Object:
    """Return the security context of a pod or container."""
    found: Object = holder.get("securityContext") or {}
    return found


def containers_where(spec: Object, test: Callable[[Object], bool]) -> list[str]:
    """Return the names of the containers that are so."""
    return [each.get("name") or "" for each in containers_of(spec) if test(each)]


def named(kind: str, names: Iterable[str]) -> str:
    """Return ``container "a"`` or ``containers "a", "b"``."""
    known = list(names)
    return f"{plural(kind, known)} {quoted(known)}"


def plural(word: str, things: Iterable[object]) -> str:
    return word if len(list(things)) == 1 else f"{word}s"


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def setters(spec: Object, test: Callable[[Object], bool]) -> str:
    """Return who sets something, ``pod and container "a"``; empty: nobody."""
    found = ["pod"] if test(security_of(spec)) else []
    containers = containers_where(spec, lambda each: test(security_of(each)))
    if containers:
        found.append(named("container", containers))
    return " and ".join(found)
