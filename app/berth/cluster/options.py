"""Options of requests beside an object: query parameters and DeleteOptions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

from berth.cluster import errors
from berth.cluster.resources import Object
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Query = Mapping[str, str]

NOTHING_ASKED: Final[Query] = {}
PARAMETERS: Final = 100
"""Of a query; the API's own are about twenty."""

MAX_INT64 = 2**63 - 1
ECHOED = 100
"""Characters of a wrong value that are told back."""


def read_query(query: bytes) -> Query:
    """Return the parameters; of one that is repeated, the last. 400 when they are too many."""
    if not query:
        return NOTHING_ASKED
    if query.count(b"&") >= PARAMETERS:
        raise errors.bad_request(f"the query of a URL may have {PARAMETERS} parameters")
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))


def flag(query: Query, name: str) -> bool:
    """Return a boolean parameter: what is not ``false`` or ``0`` is true, as apimachinery has it.

    Missing is false, empty is true.
    """
    text = query.get(name)
    return text is not None and text.lower() not in ("0", "false")


def number(query: Query, name: str) -> int | None:
    """Return an integer of 64 bits, None when nothing is said; 400 in Go's words."""
    text = query.get(name, "")
    if not text:
        return None
    why = ""
    if not INTEGER.fullmatch(text):
        why = "invalid syntax"
    elif len(text.lstrip("+-0")) > len(str(MAX_INT64)) or abs(int(text)) > MAX_INT64:
        why = "value out of range"
    if why:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text:.{ECHOED}}": {why}')
    return int(text)


INTEGER = re.compile(r"[+-]?[0-9]+")
MAX_UINT64 = 2**64 - 1


def version_problem(text: str) -> str:
    """Return what is wrong with a resource version, in Go's words; empty: nothing."""
    why = ""
    if not (text.isascii() and text.isdigit()):
        why = "invalid syntax"
    elif len(text.lstrip("0")) > len(str(MAX_UINT64)) or int(text) > MAX_UINT64:
        why = "value out of range"
    return why and f'strconv.ParseUint: parsing "{text:.{ECHOED}}": {why}'


def check_timeout(query: Query) -> None:
    """Raise a 400 unless ``timeout``, which requests here never reach, is a duration of Go's."""
    text = query.get("timeout")
    if text and not (DURATION.fullmatch(text) or text in ("0", "+0")):
        raise errors.bad_request("invalid timeout specified in the request URL")


DURATION = re.compile(r"\+?+(?:(?:\d++(?:\.\d*+)?+|\.\d++)(?:ns|us|µs|ms|s|m|h))++")


class FieldValidation(StrEnum):
    """What happens to fields that nobody knows."""

    UNSAID = ""
    """Like Warn, but without the work of finding repeated fields."""
    IGNORE = "Ignore"
    STRICT = "Strict"
    WARN = "Warn"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What ``CreateOptions``, ``UpdateOptions`` and ``PatchOptions`` say."""

    field_manager: str = ""
    """Who manages the fields that a write sets."""
    dry_run: bool = False
    """Whether nothing is to be kept."""
    field_validation: FieldValidation = FieldValidation.UNSAID


def write_options(query: Query, user_agent: str, *, kind: str, applies: bool) -> WriteOptions:
    """Read the options of a *kind* from *query*, or raise a 422 for all that is wrong with them.

    Who does not say a field manager, which who *applies* has to, is the User-Agent up to the first
    slash, of which what cannot be printed, or is too long, is left out.
    """
    manager, validation = query.get("fieldManager") or "", query.get("fieldValidation") or ""
    dry_run = [query["dryRun"]] if query.get("dryRun") else []
    found = []
    if applies and not manager:
        found.append(field_errors.required("fieldManager", "is required for apply patch"))
    elif kind == "PatchOptions" and not applies and "force" in query:
        found.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
    found += [*_manager_errors(manager), *_dry_run_errors(dry_run)]
    if validation not in tuple(FieldValidation):
        said = validation[:ECHOED]
        found.append(field_errors.not_supported("fieldValidation", said, FieldValidation))
    if found:
        raise errors.invalid_options(kind, found)
    if not manager:
        manager = (_usual if len(user_agent) <= USUAL_USER_AGENT else _client)(user_agent)
    return WriteOptions(manager, bool(dry_run), FieldValidation(validation))


def _dry_run_errors(said: list[Any]) -> Iterator[FieldError]:
    if any(value != "All" for value in said):
        why = f'Unsupported value: {field_errors.quoted(said):.{ECHOED}}: supported values: "All"'
        yield FieldError("dryRun", "FieldValueNotSupported", why)


MOST_FIELD_MANAGER = 128
"""Bytes of a field manager's name."""


def _manager_errors(said: str) -> Iterator[FieldError]:
    if len(said.encode()) > MOST_FIELD_MANAGER:
        yield field_errors.too_long("fieldManager", MOST_FIELD_MANAGER)
    position = next((i for i, each in enumerate(said) if not each.isprintable()), None)
    if position is not None:
        why = f"invalid character U+{ord(said[position]):04X} (at position {position})"
        yield field_errors.invalid("fieldManager", said, why)


USUAL_USER_AGENT = 256
"""Characters of a User-Agent that is worth remembering."""


def _client(user_agent: str) -> str:
    """Return the client that a User-Agent names."""
    plain = "".join(each for each in user_agent.partition("/")[0] if each.isprintable())
    return plain.encode()[:MOST_FIELD_MANAGER].decode(errors="ignore")


_usual = lru_cache(_client)


PROPAGATIONS = ("Foreground", "Background", "Orphan")
"""What may become of what a deleted object owns."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete, and only if."""

    grace_period_seconds: int | None = None
    """None: what the object says."""
    propagation: str = ""
    """``Background``, ``Foreground`` or ``Orphan``; empty: as the object's finalizers
    say, or else its kind."""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    awaits_dependents: bool = False
    """Whether the client said ``orphanDependents=false``: it hears (202) when the object does not
    go at once."""

    def as_object(self) -> Object:
        """Return what a client would have sent for it."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace_period_seconds is not None:
            options["gracePeriodSeconds"] = self.grace_period_seconds
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if said := {key: value for key, value in preconditions.items() if value}:
            options["preconditions"] = said
        if self.propagation:
            options["propagationPolicy"] = self.propagation
        if self.dry_run:
            options["dryRun"] = ["All"]
        return options


def delete_options(query: Query, body: Any) -> DeleteOptions:
    """Read DeleteOptions, which fit their schema, from *body*; None: there is none, but *query*."""
    if body is None:
        body = {
            "gracePeriodSeconds": number(query, "gracePeriodSeconds"),
            "propagationPolicy": query.get("propagationPolicy"),
            "dryRun": [query["dryRun"]] if query.get("dryRun") else [],
        } | {
            name: flag(query, name)
            for name in ("orphanDependents", UNSAFE_DELETION)
            if name in query
        }
    grace = body.get("gracePeriodSeconds")
    policy = body.get("propagationPolicy") or ""
    orphans = body.get("orphanDependents")
    _check_delete_options(body, policy, orphans)
    preconditions = body.get("preconditions") or {}
    if orphans is not None:
        policy = "Orphan" if orphans else "Background"
    return DeleteOptions(
        # Negative ones are read as 1, as the API server does.
        grace_period_seconds=None if grace is None else (grace if grace >= 0 else 1),
        propagation=policy,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=bool(body.get("dryRun")),
        awaits_dependents=orphans is False,
    )


UNSAFE_DELETION = "ignoreStoreReadErrorWithClusterBreakingPotential"
"""The option to delete what cannot be read; there is nothing such in this store."""


def _check_delete_options(body: Mapping[str, Any], policy: str, orphans: bool | None) -> None:
    """Raise a 422 for options that contradict each other, or that nobody knows."""
    found = []
    if orphans is not None and policy:
        both = "orphanDependents and deletionPropagation cannot be both set"
        found.append(field_errors.invalid("propagationPolicy", policy, both))
    if policy not in ("", *PROPAGATIONS):
        supported = (*PROPAGATIONS, "nil")
        found.append(
            field_errors.not_supported("propagationPolicy", f"{policy:.{ECHOED}}", supported)
        )
    found += _dry_run_errors(body.get("dryRun") or [])
    if body.get(UNSAFE_DELETION):
        off = "the feature gate AllowUnsafeMalformedObjectDeletion is disabled"
        found.append(field_errors.forbidden(UNSAFE_DELETION, off))
    if found:
        raise errors.invalid_options("DeleteOptions", found)
