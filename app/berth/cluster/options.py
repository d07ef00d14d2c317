"""Options of requests beside an object: query parameters and DeleteOptions."""

import re
from collections.abc import Mapping
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
    """Return a whole number that is not negative; None when nothing is said."""
    text = query.get(name)
    if not text:
        return None
    return whole_number(name, text)


def whole_number(name: str, text: str) -> int:
    """Read a number of the API: not negative, of 64 bits; 400 for anything else."""
    if not (text.isascii() and text.isdigit()):
        raise errors.bad_request(
            f'{name}: Invalid value: "{text:.{ECHOED}}": must be a whole number >= 0'
        )
    if len(text) > len(str(MAX_INT64)) or int(text) > MAX_INT64:
        raise errors.bad_request(
            f'{name}: Invalid value: "{text:.{ECHOED}}": value out of range: '
            f"the largest is {MAX_INT64}"
        )
    return int(text)


def check_timeout(query: Query) -> None:
    """Raise a 400 unless ``timeout``, which requests here never reach, is a duration of Go's."""
    text = query.get("timeout")
    if text and not (DURATION.fullmatch(text) or text in ("0", "+0")):
        raise errors.bad_request("invalid timeout specified in the request URL")


DURATION = re.compile(r"\+?+(?:(?:\d++(?:\.\d*+)?+|\.\d++)(?:ns|us|µs|ms|s|m|h))++")


def dry_run(query: Query, body: Mapping[str, Any] | None = None, *, kind: str) -> bool:
    """Whether nothing is to be kept: ``dryRun=All`` in the query or in DeleteOptions.

    422 for another value; *kind* is that of the options.
    """
    said = [query["dryRun"]] if query.get("dryRun") else (body or {}).get("dryRun")
    if not said:
        return False
    if not isinstance(said, list):
        raise errors.bad_request(f"dryRun: Invalid value: {said!r:.{ECHOED}}: must be a list")
    if any(value != "All" for value in said):
        why = f'Unsupported value: {field_errors.quoted(said):.{ECHOED}}: supported values: "All"'
        found = FieldError("dryRun", "FieldValueNotSupported", why)
        raise errors.invalid_options(kind, [found])
    return True


MOST_FIELD_MANAGER = 128
"""Bytes of a field manager's name."""


def check_patch(query: Query, *, applies: bool) -> None:
    """Raise a 422 unless who *applies* says by which name, and who does not says no ``force``."""
    found = []
    if not applies and "force" in query:
        found.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
    if applies and not query.get("fieldManager"):
        found.append(field_errors.required("fieldManager", "is required for apply patch"))
    if found:
        raise errors.invalid_options("PatchOptions", found)


def field_manager(query: Query, user_agent: str, *, kind: str) -> str:
    """Return who manages the fields that a write sets, or raise a 422.

    Without the parameter it is the User-Agent up to the first slash, of which what cannot be
    printed, or is too long, is left out. *kind* is that of the options: ``CreateOptions``.
    """
    said = query.get("fieldManager")
    if not said:
        return (_usual if len(user_agent) <= USUAL_USER_AGENT else _client)(user_agent)
    found = []
    if len(said.encode()) > MOST_FIELD_MANAGER:
        found.append(field_errors.too_long("fieldManager", MOST_FIELD_MANAGER))
    position = next((i for i, each in enumerate(said) if not each.isprintable()), None)
    if position is not None:
        why = f"should only contain printable characters (at position {position})"
        found.append(field_errors.invalid("fieldManager", said, why))
    if found:
        raise errors.invalid_options(kind, found)
    return said


USUAL_USER_AGENT = 256
"""Characters of a User-Agent that is worth remembering."""


def _client(user_agent: str) -> str:
    """Return the client that a User-Agent names."""
    plain = "".join(each for each in user_agent.partition("/")[0] if each.isprintable())
    return plain.encode()[:MOST_FIELD_MANAGER].decode(errors="ignore")


_usual = lru_cache(_client)


class FieldValidation(StrEnum):
    """What happens to fields that nobody knows."""

    IGNORE = "Ignore"
    STRICT = "Strict"
    UNSAID = ""
    """Like Warn, but without the work of finding repeated fields."""
    WARN = "Warn"


def field_validation(query: Query, *, kind: str) -> FieldValidation:
    """Return what happens to unknown fields, or raise a 422; *kind* is that of the options."""
    said = query.get("fieldValidation")
    if not said:
        return FieldValidation.UNSAID
    try:
        return FieldValidation(said)
    except ValueError:
        known = [each for each in FieldValidation if each]
        found = field_errors.not_supported("fieldValidation", said[:ECHOED], known)
        raise errors.invalid_options(kind, [found]) from None


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
    """Whether the client asked that what the object owns goes, too: it hears (202) when the object
    does not go at once."""

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
    """Read DeleteOptions from *body* (None: there is none) and the query, which wins."""
    if body is None:
        body = {}
    if not isinstance(body, dict) or body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise errors.bad_request("the body of a DELETE must be DeleteOptions")
    grace = number(query, "gracePeriodSeconds")
    if grace is None:
        grace = body.get("gracePeriodSeconds")
    if grace is not None and (type(grace) is not int or abs(grace) > MAX_INT64):
        raise errors.bad_request(
            f"gracePeriodSeconds: Invalid value: {grace!r:.{ECHOED}}: must be a whole number"
        )
    policy = query.get("propagationPolicy") or body.get("propagationPolicy") or ""
    orphans = body.get("orphanDependents")
    if "orphanDependents" in query:
        orphans = flag(query, "orphanDependents")
    _check_delete_options(query, body, policy, orphans)
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise errors.bad_request("preconditions: Invalid value: must be an object")
    if orphans is not None:
        policy = "Orphan" if orphans else "Background"
    return DeleteOptions(
        # Negative ones are read as 1, as the API server does.
        grace_period_seconds=None if grace is None else (grace if grace >= 0 else 1),
        propagation=policy,
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        dry_run=dry_run(query, body, kind="DeleteOptions"),
        awaits_dependents=orphans is False or policy == "Foreground",
    )


UNSAFE_DELETION = "ignoreStoreReadErrorWithClusterBreakingPotential"
"""The option to delete what cannot be read; there is nothing such in this store."""


def _check_delete_options(
    query: Query, body: Mapping[str, Any], policy: Any, orphans: bool | None
) -> None:
    """Raise a 422 for options that contradict each other, or that nobody knows."""
    found = []
    if orphans is not None and policy:
        both = "orphanDependents and deletionPropagation cannot be both set"
        found.append(field_errors.invalid("propagationPolicy", policy, both))
    policy = str(policy)
    if policy not in ("", *PROPAGATIONS):
        supported = (*PROPAGATIONS, "nil")
        found.append(
            field_errors.not_supported("propagationPolicy", f"{policy:.{ECHOED}}", supported)
        )
    if body.get(UNSAFE_DELETION) or (UNSAFE_DELETION in query and flag(query, UNSAFE_DELETION)):
        off = "the feature gate AllowUnsafeMalformedObjectDeletion is disabled"
        found.append(field_errors.forbidden(UNSAFE_DELETION, off))
    if found:
        raise errors.invalid_options("DeleteOptions", found)
