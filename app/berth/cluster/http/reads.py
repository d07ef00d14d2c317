"""Lists: which objects, in what portions, from which moment."""

import asyncio
import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from berth.cluster import errors, views
from berth.cluster.http.chunks import CHUNK_SECONDS
from berth.cluster.http.field_selectors import (
    MOST_SHOWN,
    FieldSelector,
    parse_field_selector,
)
from berth.cluster.http.list_options import (
    EXACT,
    NOT_OLDER_THAN,
    ListOptions,
    check,
    list_options,
    version_for_list,
)
from berth.cluster.options import Query
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.log import ExpiredError
from berth.cluster.storage.store import Store
from berth.cluster.storage.stored import Key, Stored
from berth.cluster.strategies.syntax import label_value, qualified_name
from berth.kube.field_errors import invalid
from berth.kube.objects.selector_text import read_requirements
from berth.kube.objects.selectors import Operator, Requirement, Selector, all_of, parse_int64
from berth.runtime.clock import Clock

TOKEN_VERSION: Final = "meta.k8s.io/v1"
LATEST: Final = -1
"""The version in a token of a list that goes on with the state of now."""

LOOKED_AT: Final = 50
"""Objects that a selector is evaluated for before it is looked at the time."""

TOO_OLD: Final = "The resourceVersion for the provided list is too old."
CONTINUE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter."
)
CONTINUE_INCONSISTENTLY: Final = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue token in this "
    "response to retrieve the remainder of the results. Continuing with the provided token results "
    "in an inconsistent list - objects that were created, modified, or deleted between the time "
    "the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind a client wants to see."""

    resource: ResourceType
    namespace: str = ""
    """Empty: all."""
    labels: Selector | None = None
    fields: FieldSelector = field(default_factory=FieldSelector)

    @property
    def is_all(self) -> bool:
        """Whether there is no selector."""
        return self.labels is None and not self.fields.requirements

    @property
    def is_everything(self) -> bool:
        """Whether there is no limit at all."""
        return self.is_all and not self.namespace

    def takes(self, stored: Stored) -> bool:
        """Whether an object, in the state that is given, is among them."""
        if self.namespace and stored.key[0] != self.namespace:
            return False
        if self.labels is not None and not self.labels.matches(stored.labels):
            return False
        if not self.fields.requirements:
            return True
        return self.fields.matches(views.fields_of(self.resource, stored, self.fields.names))

    def takes_of_list(self) -> Callable[[Stored], bool]:
        """Return :meth:`takes` for the objects of one list.

        Those with the same labels share them, so the selector is evaluated once for all of them.
        """
        labels = self.labels
        if labels is None:
            return self.takes
        others = replace(self, labels=None)
        takes_all_others = others.is_everything
        known: dict[int, bool] = {}

        def takes(stored: Stored) -> bool:
            is_match = known.get(id(stored.labels))
            if is_match is None:
                is_match = known[id(stored.labels)] = labels.matches(stored.labels)
            return is_match and (takes_all_others or others.takes(stored))

        return takes


def asked(
    resource: ResourceType,
    namespace: str,
    query: Query,
    *,
    name: str = "",
    watch: bool | None = None,
) -> tuple[Selection, ListOptions]:
    """Read what a list or a watch asks for; 400 for what is malformed, 422 for what may not be.

    *name* is of the one object that the path of a watch may say, and *watch* whether it says that
    this is one.
    """
    options = list_options(query, watch=watch)
    label_text, field_text = query.get("labelSelector", ""), query.get("fieldSelector", "")
    try:
        labels = parse_label_selector(label_text) if label_text else None
        fields = parse_field_selector(field_text)
    except ValueError as exc:
        raise errors.bad_request(str(exc)) from exc
    check(options)
    supported = views.selectable(resource)
    for each in fields.names:
        if each not in supported:
            raise errors.bad_request(_not_selectable(resource, each[:MOST_SHOWN]))
    if name:
        fields = fields.narrowed("metadata.name", name)
    return Selection(resource, namespace, labels, fields), options


def _not_selectable(resource: ResourceType, field: str) -> str:
    """Return what is said of a field that no selector may name: kinds have words of their own."""
    if resource.kind == "Job":
        return f'field label "{field}" not supported for Job'
    if resource.selectable_fields or resource.structural is not None:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


@dataclass(frozen=True, slots=True)
class Portion:
    """One page of a list."""

    objects: Sequence[Stored]
    version: int
    """Of the whole list; 0: it has none, because it is not stored."""
    continue_token: str = ""
    remaining: int | None = None
    """How many are left after this page, where that is cheap to say."""
    fetched: int = 0
    """How many objects were looked at."""

    @property
    def metadata(self) -> Object:
        """The ``metadata`` of the list."""
        found: Object = {"resourceVersion": str(self.version)} if self.version else {}
        if self.continue_token:
            found["continue"] = self.continue_token
            if self.remaining is not None:
                found["remainingItemCount"] = self.remaining
        return found


class _Token(msgspec.Struct, rename={"version": "rv", "api": "v"}):
    """Where a list goes on: the state it shows, and the key it goes on at."""

    start: str = ""
    version: int = 0
    api: str = ""


async def list_objects(
    store: Store, wanted: Selection, options: ListOptions, clock: Clock
) -> Portion:
    """Return the page that ``limit``, ``continue`` and ``resourceVersion`` ask for.

    Others on the event loop get turns while a selector is evaluated.

    Pages of one list all show the state of the first, as long as the log reaches back to it; after
    that a client may go on with the state of now. 410 and 504 as in apiserver's etcd3 store.
    """
    key, namespace, limit = wanted.resource.storage_key, wanted.namespace, options.limit
    token = _decode_token(options.continue_) if options.continue_ else None
    if token is not None and not options.is_any_version:
        why = "specifying resource version is not allowed when using continue"
        raise errors.bad_request(why)
    asked = version_for_list(options)
    if asked > store.version:
        raise errors.too_large_version(asked, store.version)
    is_exact = options.resource_version_match == EXACT or (
        limit > 0 and options.resource_version_match != NOT_OLDER_THAN
    )
    version, start = asked if asked and is_exact else None, None
    if token is not None:
        start = _key_of(token.start, namespace)
        version = None if token.version == LATEST else token.version
    most = limit + 1 if limit and wanted.is_all else None
    try:
        found = store.listing(key, namespace, version=version, start=start, most=most)
    except ExpiredError as exc:
        if not limit:
            raise errors.expired(TOO_OLD) from exc
        if token is None:
            raise errors.expired(CONTINUE_TOO_OLD) from exc
        go_on = _encode_token(token.start, LATEST)
        raise errors.expired(CONTINUE_INCONSISTENTLY, continue_token=go_on) from exc
    if wanted.is_all:
        objects, count = found.objects, min(found.total, limit or found.total)
    else:
        objects, count = await _taken(found.objects, wanted, limit + 1 if limit else None, clock)
    if not limit or len(objects) <= limit:
        return Portion(objects, found.version, fetched=count)
    page = objects[:limit]
    remaining = found.total - limit if wanted.is_all else None
    # The first key after the last of this page, as etcd has it.
    token_text = _encode_token(_start_after(page[-1].key, namespace), found.version)
    return Portion(page, found.version, token_text, remaining, fetched=count)


async def _taken(
    objects: Sequence[Stored], wanted: Selection, most: int | None, clock: Clock
) -> tuple[list[Stored], int]:
    """Return the objects that are wanted, at most *most*, and how many were looked at."""
    taken: list[Stored] = []
    takes = wanted.takes_of_list()
    until = clock.monotonic() + CHUNK_SECONDS
    for count, each in enumerate(objects, 1):
        if takes(each):
            taken.append(each)
            if len(taken) == most:
                return taken, count
        if count % LOOKED_AT == 0 and clock.monotonic() >= until:
            await asyncio.sleep(0)
            until = clock.monotonic() + CHUNK_SECONDS
    return taken, len(objects)


def check_version(store: Store, query: Query) -> None:
    """Raise a 504 when a GET wants a state that is yet to come, a 400 when that is no version."""
    if "resourceVersion" in query:
        asked = version_for_list(ListOptions(resource_version=query["resourceVersion"]))
        if asked > store.version:
            raise errors.too_large_version(asked, store.version)


def _start_after(key: Key, namespace: str) -> str:
    """Return where a list goes on after *key*; in a list of one namespace that is not said."""
    name = f"{key[1]}\0"
    return name if namespace or not key[0] else f"{key[0]}/{name}"


def _key_of(start: str, namespace: str) -> Key:
    """Return the key that a list goes on at."""
    if namespace:
        return namespace, start
    of, slash, name = start.rpartition("/")
    return (of, name) if slash else ("", start)


def _encode_token(start: str, version: int) -> str:
    token = _Token(start=start, version=version, api=TOKEN_VERSION)
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> _Token:
    """Read a continue token; 400 in the words of apiserver's ``DecodeContinue``."""
    wrong = NOT_BASE64.search(text)
    if wrong or len(text) % 4 == 1:
        place = wrong.start() if wrong else len(text) - 1
        raise _bad_token(f": illegal base64 data at input byte {place}")
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(content, type=_Token)
    except (ValueError, msgspec.MsgspecError) as exc:
        raise _bad_token(f": {exc}") from exc
    if token.api != TOKEN_VERSION:
        raise _bad_token(f": server does not recognize this encoded version {token.api!r:.100}")
    if not token.version:
        raise _bad_token(f": incorrect encoded start resourceVersion (version {TOKEN_VERSION})")
    if not token.start:
        raise _bad_token(f": encoded start key empty (version {TOKEN_VERSION})")
    if token.version < LATEST or token.start.count("/") > 1:
        raise _bad_token(f": {token.start!r:.100}")
    return token


NOT_BASE64: Final = re.compile("[^-_A-Za-z0-9]")


def _bad_token(why: str) -> errors.StatusError:
    return errors.bad_request(f"invalid continue token: continue key is not valid{why}")


# The ``labelSelector`` of requests: refused in kube-apiserver's words.


def parse_label_selector(text: str) -> Selector:
    """Compile the ``labelSelector`` of a query. Raises ValueError as ``labels.Parse`` does."""
    return all_of(read_requirements(text, check_key=_check_key, check_values=_check_values))


def _check_key(key: str) -> None:
    if wrong := qualified_name(key):
        raise ValueError(str(invalid("<nil>", key, "; ".join(wrong))))


def _check_values(requirement: Requirement) -> None:
    key, values, found = requirement.key, requirement.values, []
    if requirement.operator in (Operator.GT, Operator.LT):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        found += [invalid("values[0]", each, why) for each in values if parse_int64(each) is None]
    for index, value in enumerate(sorted(set(values))):
        if wrong := label_value(value):
            found.append(invalid(f"values[{index}][{key}]", value, "; ".join(wrong)))
    if found:
        told = ", ".join(map(str, found))
        raise ValueError(told if len(found) == 1 else f"[{told}]")
