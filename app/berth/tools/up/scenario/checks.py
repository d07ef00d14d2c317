"""Checks of statements against what is seen."""

import fnmatch
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from berth.cluster.json_path import JsonPath
from berth.cluster.resources import Object
from berth.kube.objects.quantity import parse
from berth.kube.objects.selector_text import parse_label_selector
from berth.tools.up.scenario.conditions import condition, is_ready, is_terminating, node_of
from berth.tools.up.scenario.expectations import (
    Count,
    Event,
    Explain,
    Objects,
    Pods,
    Spread,
    Statement,
)
from berth.tools.up.scenario.observed import Observed

MOST_SHOWN: Final = 12
"""Pods that a finding lists."""

ANY: Final = Count(at_least=1)

_selector = lru_cache(maxsize=256)(parse_label_selector)

ExplainText = Callable[[str], str]
"""Returns what the scheduler says of the pod ``namespace/name``; raises LookupError."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a look."""

    holds: bool
    expected: str
    seen: str


def check(statement: Statement, observed: Observed, explain: ExplainText) -> Finding:
    """Look whether *statement* is true now."""
    if statement.pods is not None:
        return _check_pods(statement.pods, observed)
    if statement.objects is not None:
        return _check_objects(statement.objects, observed)
    if statement.event is not None:
        return _check_event(statement.event, observed)
    assert statement.explain is not None
    return _check_explain(statement.explain, explain)


def words(statement: Statement) -> str:
    """Return *statement* in a line for people."""
    given = statement.pods or statement.objects or statement.event or statement.explain
    assert given is not None
    name = next(n for n in Statement.model_fields if getattr(statement, n) is not None)
    parts = [f"{field} {value}" for field, value in _given(given).items()]
    return f"{name}: {', '.join(parts)}"


def _given(model: Any) -> Mapping[str, str]:
    fields = type(model).model_fields
    return {
        fields[name].alias or name: _shown(getattr(model, name))
        for name in fields
        if name in model.model_fields_set
    }


def _shown(value: Any) -> str:
    match value:
        case Spread():
            return " ".join(f"{field} {text}" for field, text in _given(value).items())
        case tuple():
            return " and ".join(f"{item!r}" for item in value)
        case bool():
            return str(value).lower()
    return str(value)


def _takes(wanted: int | Count, number: int) -> bool:
    return number == wanted if isinstance(wanted, int) else wanted.takes(number)


# Pods.


def _check_pods(wanted: Pods, observed: Observed) -> Finding:
    nodes = observed.of("Node")
    group = [pod for pod in observed.of("Pod").values() if _is_of_group(pod, wanted)]
    matching = [pod for pod in group if _is_as_wanted(pod, wanted, nodes)]
    holds, facts = True, [f"{len(matching)} of {len(group)}"]
    count = wanted.count
    if count is None and not _counts_otherwise(wanted):
        count = ANY
    if count is not None:
        holds = _takes(count, len(matching))
    per_node = Counter(node for pod in matching if (node := node_of(pod)))
    if wanted.nodes is not None:
        holds = holds and _takes(wanted.nodes, len(per_node))
        facts.append(f"on {len(per_node)} nodes")
    if wanted.per_node is not None:
        holds = holds and all(_takes(wanted.per_node, count) for count in per_node.values())
        facts.append(f"by node: {dict(sorted(per_node.items()))}")
    if wanted.spread is not None:
        domains = _domains(matching, wanted.spread, nodes)
        skew = max(domains.values(), default=0) - min(domains.values(), default=0)
        if wanted.spread.max_skew is not None:
            holds = holds and bool(domains) and skew <= wanted.spread.max_skew
        if wanted.spread.domains is not None:
            used = sum(count > 0 for count in domains.values())
            holds = holds and _takes(wanted.spread.domains, used)
        facts.append(f"skew {skew}: {dict(sorted(domains.items()))}")
    seen = "; ".join([", ".join(facts), *map(_described, group[:MOST_SHOWN])])
    if len(group) > MOST_SHOWN:
        seen += f"; and {len(group) - MOST_SHOWN} more"
    return Finding(holds, words(Statement(pods=wanted)), seen)


def _counts_otherwise(wanted: Pods) -> bool:
    return not (wanted.nodes is None and wanted.per_node is None and wanted.spread is None)


def _is_of_group(pod: Object, wanted: Pods) -> bool:
    return _is_named(pod, wanted.namespace, wanted.name, wanted.selector)


def _is_named(obj: Object, namespace: str, name: str, selector: str) -> bool:
    metadata = obj["metadata"]
    return (
        (not namespace or metadata.get("namespace", "") in ("", namespace))
        and (not name or fnmatch.fnmatchcase(metadata["name"], name))
        and (not selector or _selector(selector).matches(metadata.get("labels") or {}))
    )


def _is_as_wanted(pod: Object, wanted: Pods, nodes: Mapping[str, Object]) -> bool:
    status, node = pod.get("status") or {}, node_of(pod)
    if is_terminating(pod) is not wanted.terminating:
        return False
    if wanted.phase and status.get("phase") != wanted.phase:
        return False
    if wanted.ready is not None and (is_ready(pod)) != wanted.ready:
        return False
    if wanted.scheduled is not None and bool(node) != wanted.scheduled:
        return False
    if wanted.node and not fnmatch.fnmatchcase(node, wanted.node):
        return False
    nominated = status.get("nominatedNodeName") or ""
    if wanted.nominated_node and not fnmatch.fnmatchcase(nominated, wanted.nominated_node):
        return False
    if wanted.node_selector:
        labels = (nodes.get(node) or {"metadata": {}})["metadata"].get("labels") or {}
        if not node or not _selector(wanted.node_selector).matches(labels):
            return False
    if wanted.reason and wanted.reason not in (
        status.get("reason"),
        condition(pod, "PodScheduled", "reason"),
    ):
        return False
    if wanted.restarts is not None and _restarts(pod) < wanted.restarts:
        return False
    messages = f"{status.get('message') or ''}\n{condition(pod, 'PodScheduled', 'message')}"
    return wanted.message in messages


def _restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(status.get("restartCount") or 0) for status in statuses), default=0)


def _domains(pods: list[Object], spread: Spread, nodes: Mapping[str, Object]) -> dict[str, int]:
    key = spread.topology_key
    of_node = {
        name: labels[key]
        for name, node in nodes.items()
        if key in (labels := node["metadata"].get("labels") or {})
    }
    counts = dict.fromkeys(of_node.values(), 0)
    for pod in pods:
        if node_of(pod) in of_node:
            counts[of_node[node_of(pod)]] += 1
    return counts


def _described(pod: Object) -> str:
    """Return a line about a pod: where it is, or why nowhere."""
    status = pod.get("status") or {}
    what = str(status.get("reason") or status.get("phase") or "")
    if is_terminating(pod):
        what = f"{what}, terminating"
    why = condition(pod, "PodScheduled", "message") if not node_of(pod) else status.get("message")
    where = f" on {node_of(pod)}" if node_of(pod) else ""
    return f"{pod['metadata']['name']} {what}{where}{f': {why}' if why else ''}"


# Objects and events.


def _check_objects(wanted: Objects, observed: Observed) -> Finding:
    group = [
        obj
        for obj in observed.of(wanted.kind).values()
        if _is_named(obj, wanted.namespace, wanted.name, wanted.selector)
    ]
    path = JsonPath(wanted.path) if wanted.path else None
    values = [path.find(obj) if path else [] for obj in group]
    count = sum(path is None or _is_value(value, wanted) for value in values)
    seen = [f"{count} of {len(group)}"]
    for obj, there in list(zip(group, values, strict=True))[:MOST_SHOWN]:
        shown = f": {', '.join(map(str, there)) or 'nothing there'}" if path else ""
        seen.append(f"{obj['metadata']['name']}{shown}")
    holds = _takes(ANY if wanted.count is None else wanted.count, count)
    return Finding(holds, words(Statement(objects=wanted)), "; ".join(seen))


def _is_value(values: list[Any], wanted: Objects) -> bool:
    compared = wanted.model_fields_set & {"equals", "contains", "at_least", "at_most"}
    if not compared:
        return bool(values)
    return any(all(_compares(value, name, wanted) for name in compared) for value in values)


def _compares(value: Any, name: str, wanted: Objects) -> bool:
    match name:
        case "equals":
            return _is_equal(value, wanted.equals)
        case "contains":
            return isinstance(value, str) and wanted.contains in value
    number, bound = _number(value), _number(getattr(wanted, name))
    if number is None or bound is None:
        return False
    return number >= bound if name == "at_least" else number <= bound


def _is_equal(value: Any, wanted: Any) -> bool:
    if value == wanted:
        return True
    number = _number(value)
    return number is not None and number == _number(wanted)


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return parse(value)
    except ValueError:
        return None


def _check_event(wanted: Event, observed: Observed) -> Finding:
    matching = [event for event in observed.of("Event").values() if _is_event(event, wanted)]
    of_reason = [e for e in observed.of("Event").values() if e.get("reason") == wanted.reason]
    seen = [f"{len(matching)} of {len(of_reason)} with that reason"]
    for event in of_reason[-MOST_SHOWN:]:
        about = event.get("involvedObject") or {}
        seen.append(f"{about.get('kind')}/{about.get('name')}: {event.get('message')}")
    holds = _takes(ANY if wanted.count is None else wanted.count, len(matching))
    return Finding(holds, words(Statement(event=wanted)), "; ".join(seen))


def _is_event(event: Object, wanted: Event) -> bool:
    about = event.get("involvedObject") or {}
    return (
        event.get("reason") == wanted.reason
        and wanted.kind in ("", about.get("kind"))
        and wanted.namespace in ("", about.get("namespace"))
        and (not wanted.name or fnmatch.fnmatchcase(str(about.get("name")), wanted.name))
        and wanted.message in str(event.get("message") or "")
    )


def _check_explain(wanted: Explain, explain: ExplainText) -> Finding:
    try:
        text = explain(f"{wanted.namespace}/{wanted.pod}")
    except LookupError as exc:
        return Finding(holds=False, expected=words(Statement(explain=wanted)), seen=str(exc))
    plain = " ".join(text.split())
    holds = all(" ".join(part.split()) in plain for part in wanted.contains)
    return Finding(holds, words(Statement(explain=wanted)), f"\n{text}")


def kinds_of(statements: Iterable[Statement], *, of_explain: Collection[str] = ()) -> set[str]:
    """Return the kinds of objects on which it depends whether these are true.

    *of_explain* are those on which an explanation depends.
    """
    kinds: set[str] = set()
    for statement in statements:
        if statement.pods is not None:
            kinds |= {"Pod", "Node"}
        elif statement.objects is not None:
            kinds.add(statement.objects.kind)
        elif statement.event is not None:
            kinds.add("Event")
        else:
            kinds.update(of_explain)
    return kinds
