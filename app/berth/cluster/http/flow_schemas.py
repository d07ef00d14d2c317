"""Which FlowSchema and priority level a request belongs to, and how many did (KEP-1040).

Requests are told what they were, and counted, as by a real server. Their limits are others:
fairness is between users, see :mod:`.in_flight`.

Source: ``k8s.io/apiserver/pkg/util/flowcontrol`` (``rule.go``, ``apf_controller.go``).
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, TypeAlias

from berth.cluster.access.attributes import Attributes, attributes_of
from berth.cluster.access.users import User, split_service_account
from berth.cluster.kinds.builtin import find
from berth.cluster.options import read_query
from berth.cluster.resources import Object
from berth.cluster.storage.log import Change
from berth.cluster.storage.store import Store
from berth.runtime.metrics import Family, LabelValues, Stability, counter, gauge

GROUP: Final = "flowcontrol.apiserver.k8s.io"
SCHEMAS: Final = find(GROUP, "v1", "flowschemas").storage_key
LEVELS: Final = find(GROUP, "v1", "prioritylevelconfigurations").storage_key

FLOW: Final = "flow"
"""Where the scope of a request has its :class:`Flow`."""

_FLOW_LABELS: Final = ("priority_level", "flow_schema")
DISPATCHED: Final = counter(
    name="apiserver_flowcontrol_dispatched_requests_total",
    stability=Stability.BETA,
    text="Number of requests that were executed, by priority level and flow schema.",
    labels=_FLOW_LABELS,
)
REJECTED: Final = counter(
    name="apiserver_flowcontrol_rejected_requests_total",
    stability=Stability.BETA,
    text="Number of requests that were rejected, by priority level, flow schema and reason.",
    labels=(*_FLOW_LABELS, "reason"),
)
EXECUTING: Final = gauge(
    name="apiserver_flowcontrol_current_executing_requests",
    stability=Stability.BETA,
    text="Number of requests in progress that are not long-running.",
    labels=_FLOW_LABELS,
)
NOMINAL_SEATS: Final = gauge(
    name="apiserver_flowcontrol_nominal_limit_seats",
    stability=Stability.BETA,
    text="Share of the priority level in the limits of requests in progress, by its shares.",
    labels=("priority_level",),
)
CONCURRENCY_LIMIT: Final = "concurrency-limit"
"""The reason of all rejections here."""


class Flow(NamedTuple):
    """What a request belongs to: names and uids of its FlowSchema and priority level."""

    schema: str = ""
    schema_uid: str = ""
    level: str = ""
    level_uid: str = ""

    @property
    def labels(self) -> LabelValues:
        return self.level, self.schema

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What answers say of it."""
        return [
            (b"x-kubernetes-pf-flowschema-uid", self.schema_uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", self.level_uid.encode()),
        ]


MOST_USERS: Final = 1000
"""Whose flows are remembered."""
NO_FLOW: Final = Flow()
"""Of requests where no FlowSchema fits: there are none yet."""


class FlowControl:
    """Follows FlowSchemas and priority levels, and counts requests by them."""

    def __init__(self, store: Store, *, seats: int) -> None:
        """*seats* is how many requests may be in progress."""
        self._store = store
        self._seats = seats
        self._known: list[_FlowRules] | None = None
        """The first to be asked first; None: they may have changed."""
        self._by_user: dict[tuple[str, ...], list[_FlowRules]] = {}
        """Those that are about a user, by name and groups."""
        self._dispatched: dict[LabelValues, float] = {}
        self._rejected: dict[LabelValues, float] = {}
        self._executing: dict[LabelValues, float] = {}
        for key in (SCHEMAS, LEVELS):
            store.follow(key, self._changed)

    def flow_of(self, user: User, method: str, path: str, query: bytes) -> Flow:
        """Return what a request belongs to."""
        wanted: list[Attributes] = []

        def attributes() -> Attributes:
            if not wanted:
                wanted.append(attributes_of(method, path, read_query(query)))
            return wanted[0]

        for flow, rules in self._flows_for(user):
            if any(_matches(rule, attributes) for rule in rules):
                return flow
        return NO_FLOW

    def enter(self, flow: Flow) -> None:
        """Count a request that may go on."""
        labels = flow.labels
        self._dispatched[labels] = self._dispatched.get(labels, 0) + 1
        self._executing[labels] = self._executing.get(labels, 0) + 1

    def leave(self, flow: Flow) -> None:
        """Count a request no longer as being in progress."""
        self._executing[flow.labels] -= 1

    def reject(self, flow: Flow) -> None:
        """Count a request that may not go on."""
        self._rejected[flow.labels] = self._rejected.get(flow.labels, 0) + 1

    def measured(self) -> list[tuple[Family, Mapping[LabelValues, float]]]:
        """Return what is to be scraped."""
        levels = [each.decode() for each in self._store.list(LEVELS)]
        shares = {each["metadata"]["name"]: _shares(each["spec"]) for each in levels}
        total = sum(shares.values()) or 1
        seats: dict[LabelValues, float] = {
            (name,): math.ceil(self._seats * n / total) for name, n in shares.items()
        }
        rejected: dict[LabelValues, float] = {
            (*labels, CONCURRENCY_LIMIT): n for labels, n in self._rejected.items()
        }
        return [
            (DISPATCHED, dict(self._dispatched)),
            (REJECTED, rejected),
            (EXECUTING, dict(self._executing)),
            (NOMINAL_SEATS, seats),
        ]

    def _changed(self, _change: Change) -> None:
        self._known = None
        self._by_user.clear()
        names = {stored.name for stored in self._store.list(SCHEMAS)}
        for counted in (self._dispatched, self._rejected, self._executing):
            for labels in [each for each in counted if each[1] and each[1] not in names]:
                if not (counted is self._executing and counted[labels]):
                    del counted[labels]

    def _flows_for(self, user: User) -> list["_FlowRules"]:
        """Return the flows that a user may have, with the rules that are about the user."""
        key = (user.name, *user.groups)
        flows = self._by_user.get(key)
        if flows is None:
            flows = []
            for flow, rules in self._flows():
                of_user = [rule for rule in rules if _is_about(rule, user)]
                if of_user:
                    flows.append((flow, of_user))
            if len(self._by_user) >= MOST_USERS:
                self._by_user.clear()
            self._by_user[key] = flows
        return flows

    def _flows(self) -> list["_FlowRules"]:
        """Return all flows of levels that there are, by precedence and name."""
        if self._known is None:
            levels = {each.name: each.uid for each in self._store.list(LEVELS)}
            found = []
            for stored in self._store.list(SCHEMAS):
                spec = stored.decode()["spec"]
                level = spec["priorityLevelConfiguration"]["name"]
                if level in levels:
                    flow = Flow(stored.name, stored.uid, level, levels[level])
                    rank = spec.get("matchingPrecedence") or 0, stored.name
                    rules = [_Rule(each, _is_everything(each)) for each in spec.get("rules") or ()]
                    found.append((rank, flow, rules))
            found.sort(key=lambda each: each[0])
            self._known = [(flow, rules) for _, flow, rules in found]
        return self._known


def _shares(spec: Object) -> int:
    kind = "exempt" if spec.get("type") == "Exempt" else "limited"
    return int((spec.get(kind) or {}).get("nominalConcurrencyShares") or 0)


class _Rule(NamedTuple):
    """A PolicyRulesWithSubjects."""

    said: Object
    is_everything: bool
    """Whether it is about all that its subjects may ask for."""


_FlowRules: TypeAlias = tuple[Flow, list[_Rule]]


def _is_everything(rule: Object) -> bool:
    everything = Attributes("*", "*", "*")
    return any(
        _is_resource(each, everything) and "*" in (each.get("namespaces") or ())
        for each in rule.get("resourceRules") or ()
    ) and any(
        "*" in (each.get("verbs") or ()) and "*" in (each.get("nonResourceURLs") or ())
        for each in rule.get("nonResourceRules") or ()
    )


def _is_about(rule: _Rule, user: User) -> bool:
    return any(_is_subject(user, subject) for subject in rule.said.get("subjects") or ())


def _matches(known: _Rule, attributes: Callable[[], Attributes]) -> bool:
    """Tell whether a rule about the user is about the request, too."""
    if known.is_everything:
        return True
    rule, wanted = known.said, attributes()
    if not wanted.resource:
        return any(_is_path(each, wanted) for each in rule.get("nonResourceRules") or ())
    return any(_is_resource(each, wanted) for each in rule.get("resourceRules") or ())


def _is_subject(user: User, subject: Object) -> bool:
    match subject:
        case {"kind": "User", "user": {"name": name}}:
            return name in ("*", user.name)
        case {"kind": "Group", "group": {"name": name}}:
            return name == "*" or name in user.groups
        case {"kind": "ServiceAccount", "serviceAccount": account}:
            found = split_service_account(user.name)
            names = ("*", found[1]) if found is not None else ()
            return (
                found is not None and account["namespace"] == found[0] and account["name"] in names
            )
        case _:
            return False


def _has(values: Collection[str] | None, value: str) -> bool:
    return values is not None and (value in values or "*" in values)


def _is_resource(rule: Object, wanted: Attributes) -> bool:
    is_there = (
        _has(rule.get("namespaces"), wanted.namespace)
        if wanted.namespace
        else bool(rule.get("clusterScope"))
    )
    return (
        is_there
        and _has(rule.get("verbs"), wanted.verb)
        and _has(rule.get("apiGroups"), wanted.group)
        and _has(rule.get("resources"), wanted.full_resource)
    )


def _is_path(rule: Object, wanted: Attributes) -> bool:
    if not _has(rule.get("verbs"), wanted.verb):
        return False
    return any(
        url == "*"
        or url.rstrip("/") == wanted.path.rstrip("/")
        or (url.endswith("/*") and wanted.path.startswith(url[:-1]))
        for url in rule.get("nonResourceURLs") or ()
    )
