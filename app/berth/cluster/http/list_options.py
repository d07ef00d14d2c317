"""``ListOptions`` of meta/v1: what the query of a list or a watch says, decoded and validated.

The rules and words are those of apimachinery's ``internalversion/validation`` and of apiserver's
``storage.ValidateListOptions``.
"""

from dataclasses import dataclass
from typing import Final

from berth.cluster import errors
from berth.cluster.options import ECHOED, Query, flag, number, version_problem
from berth.kube.field_errors import FieldError

EXACT: Final = "Exact"
NOT_OLDER_THAN: Final = "NotOlderThan"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The parameters of a list or watch; selectors are read elsewhere."""

    watch: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    """``Exact``, ``NotOlderThan``, or empty."""
    limit: int = 0
    """0: no limit."""
    continue_: str = ""
    send_initial_events: bool | None = None
    allow_watch_bookmarks: bool = False
    timeout_seconds: int = 0
    """0: as the server likes."""

    @property
    def is_any_version(self) -> bool:
        """Whether ``resourceVersion`` asks for nothing in particular."""
        return self.resource_version in ("", "0")


def list_options(query: Query, *, watch: bool | None = None) -> ListOptions:
    """Read the parameters of a list or watch; 400 for what cannot be read.

    *watch* is for paths that say it themselves. A watch that begins anywhere begins with what is
    there, as ``sendInitialEvents`` has it.
    """
    return ListOptions(
        watch=flag(query, "watch") if watch is None else watch,
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        limit=max(number(query, "limit") or 0, 0),
        continue_=query.get("continue", ""),
        send_initial_events=flag(query, said) if (said := "sendInitialEvents") in query else None,
        allow_watch_bookmarks=flag(query, "allowWatchBookmarks"),
        timeout_seconds=max(number(query, "timeoutSeconds") or 0, 0),
    )


def check(options: ListOptions) -> None:
    """Raise a 422 for what is forbidden."""
    found = list(_watch_errors(options) if options.watch else _list_errors(options))
    if found:
        raise errors.invalid_options("ListOptions", found)


def version_for_list(options: ListOptions) -> int:
    """Return ``resourceVersion``; 0: any. 400 for what is no version."""
    text = options.resource_version
    problem = _problem(text)
    if problem is not None:
        raise errors.bad_request(f"invalid resource version: {problem}")
    return int(text or 0)


def version_for_watch(options: ListOptions) -> int:
    """Return ``resourceVersion``; 0: any. 500 for what is no version, as the server has it."""
    problem = _problem(options.resource_version)
    if problem is not None:
        raise errors.StatusError(500, "", str(problem))
    return int(options.resource_version or 0)


def _problem(text: str) -> FieldError | None:
    """Return what is wrong with a resource version; None: nothing."""
    if not text or not (why := version_problem(text)):
        return None
    message = f'Invalid value: "{text:.{ECHOED}}": {why}'
    return FieldError("resourceVersion", "FieldValueInvalid", message)


def _forbidden(field: str, why: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {why}")


def _match_is_not_supported(options: ListOptions, *supported: str) -> FieldError:
    values = ", ".join(f'"{each}"' for each in supported)
    said = f'"{options.resource_version_match:.{ECHOED}}"'
    message = f"Unsupported value: {said}: supported values: {values}"
    return FieldError("resourceVersionMatch", "FieldValueNotSupported", message)


def _list_errors(options: ListOptions) -> list[FieldError]:
    found = []
    match, field = options.resource_version_match, "resourceVersionMatch"
    if match:
        if not options.resource_version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            found.append(_forbidden(field, why))
        if options.continue_:
            why = "resourceVersionMatch is forbidden when continue is provided"
            found.append(_forbidden(field, why))
        if match not in (EXACT, NOT_OLDER_THAN):
            found.append(_match_is_not_supported(options, EXACT, NOT_OLDER_THAN, ""))
        if match == EXACT and options.resource_version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            found.append(_forbidden(field, why))
    if options.send_initial_events is not None:
        why = "sendInitialEvents is forbidden for list"
        found.append(_forbidden("sendInitialEvents", why))
    return found


def _watch_errors(options: ListOptions) -> list[FieldError]:
    found = []
    match, field = options.resource_version_match, "resourceVersionMatch"
    if options.send_initial_events is not None and match != NOT_OLDER_THAN:
        why = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        found.append(_forbidden(field, why))
    if match:
        if options.send_initial_events is None:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            found.append(_forbidden(field, why))
        if match != NOT_OLDER_THAN:
            found.append(_match_is_not_supported(options, NOT_OLDER_THAN))
        if options.continue_:
            why = "resourceVersionMatch is forbidden when continue is provided"
            found.append(_forbidden(field, why))
    return found
