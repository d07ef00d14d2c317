"""Holds plugins by others so that what is wrong with one fails an attempt, not the scheduler.

In-tree plugins are held to account by tests instead: a look at every answer costs more than many of
them take. A call that never returns is ended by :mod:`berth.scheduler.profile.plugin_interrupt`.
"""

import logging
import math
from collections.abc import Callable, Hashable, Iterable
from types import FrameType
from typing import Any, Final, NamedTuple

import numpy as np

from berth.runtime.clock import Clock
from berth.scheduler.framework.cycle_state import Gang
from berth.scheduler.framework.events import (
    ClusterEventWithHint,
    HintIndex,
    QueueingHint,
    QueueingHintFn,
)
from berth.scheduler.framework.interface import (
    EnqueueExtensions,
    Plugin,
    PodGroupPostFilterResult,
    PostFilterResult,
    PreFilterResult,
)
from berth.scheduler.framework.key_index import ANYWHERE, Choices
from berth.scheduler.framework.placement import Placement
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.preemption.candidate import Preemption
from berth.scheduler.framework.scalar import ScalarPreFilterExtensions
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Rejection, Verdict
from berth.scheduler.metrics.plugin_observer import PluginObserver
from berth.scheduler.profile.statuses import bug_in

log = logging.getLogger(__name__)

IN_TREE: Final = "berth_plugins"
"""The package whose plugins need no guard; those of all others do."""

REST_SECONDS: Final = 60.0
"""For how long a plugin that was interrupted is not asked: nobody else would have a turn."""

LOG_EVERY: Final = 60.0
"""Seconds; a plugin that fails again and again at one point is logged so often."""

_REJECTING: Final = frozenset(
    {
        Code.UNSCHEDULABLE,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        Code.PENDING,
        Code.ERROR,
    }
)

_CALLS: Final = frozenset({"guarded", "keys_of_pod", "keys_of_event"})
"""The functions here that call plugins."""

Read = Callable[[Any, tuple[Any, ...]], Any]
"""Returns an answer, to a call with these arguments, in the form that the interface promises.

Raises TypeError or ValueError that says what is wrong with it.
"""


def is_in_tree(kind: type[Plugin]) -> bool:
    return kind.__module__.partition(".")[0] == IN_TREE


class PluginInterruptedError(Exception):
    """What a plugin's call raises that held the event loop for too long."""


def is_call(frame: FrameType) -> bool:
    """Whether *frame* is where a guard calls a plugin, and catches what it raises."""
    return frame.f_globals is globals() and frame.f_code.co_name in _CALLS


class Complaints:
    """Logs what plugins do wrong: the first time, then at most once per :data:`LOG_EVERY`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._logged: dict[tuple[str, str], float] = {}
        self._kept_back: dict[tuple[str, str], int] = {}

    def add(self, plugin: str, point: str, *, pod: str, error: Exception) -> None:
        kind, now = (plugin, point), self.clock.monotonic()
        if now - self._logged.get(kind, -math.inf) < LOG_EVERY:
            self._kept_back[kind] = self._kept_back.get(kind, 0) + 1
            return
        self._logged[kind] = now
        log.error(
            "plugin failed",
            exc_info=error,
            extra={
                "plugin": plugin,
                "extension_point": point,
                "pod": pod,
                "not_logged": self._kept_back.pop(kind, 0),
            },
        )


class Guard:
    """Stands between one profile and its plugins by others."""

    def __init__(self, observer: PluginObserver, complaints: Complaints) -> None:
        """*observer* is told of every call, sampled or not."""
        self._observer = observer
        self._complaints = complaints
        self._resting: dict[str, float] = {}
        """Plugins that are not asked, by name; until when."""

    def hold(self, plugin: Plugin) -> None:
        """Have every extension point of *plugin* called through the guard from now on.

        A plugin that raises, or answers with something else than the interface has, is taken to
        have answered an error; a hint to have answered Queue. Raises what the plugin raises when it
        is asked which events it registers, which happens here and only once.
        """
        if isinstance(plugin, EnqueueExtensions):
            registered = [self._held(plugin, event) for event in plugin.events_to_register()]
            self._put(plugin, "events_to_register", lambda: registered)
        for method, point in _SYNC.items():
            if hasattr(plugin, method) and not (
                method in _BY_ROWS and isinstance(plugin, ScalarPreFilterExtensions)
            ):
                self._put(plugin, method, self._sync(plugin, getattr(plugin, method), point))
        for method, point in _ASYNC.items():
            if hasattr(plugin, method):
                self._put(plugin, method, self._async(plugin, getattr(plugin, method), point))
        if hasattr(plugin, "sort_key"):
            self._put(plugin, "sort_key", self._sort_key(plugin, plugin.sort_key))

    @staticmethod
    def _put(plugin: Plugin, method: str, call: Callable[..., Any]) -> None:
        """Shadow a method on the instance: whoever calls it needs to know nothing of the guard."""
        setattr(plugin, method, call)

    def _sync(
        self, plugin: Plugin, call: Callable[..., Any], point: "_Point"
    ) -> Callable[..., Any]:
        now, took = self._observer.now, self._observer.plugin_took
        resting = self._resting

        def guarded(*args: Any) -> Any:
            if resting and self._rests(plugin):
                return bug_in(plugin, _RESTS) if point.is_asked else None
            started = now()
            try:
                answer = point.read(call(*args), args)
            except Exception as exc:  # noqa: BLE001 - whatever it is, it is the plugin's
                answer = self._failed(plugin, point, args, exc)
            took(point.name, plugin.NAME, now() - started)
            return answer

        return guarded

    def _async(
        self, plugin: Plugin, call: Callable[..., Any], point: "_Point"
    ) -> Callable[..., Any]:
        now, took = self._observer.now, self._observer.plugin_took
        resting = self._resting

        async def guarded(*args: Any) -> Any:
            if resting and self._rests(plugin):
                return bug_in(plugin, _RESTS) if point.is_asked else None
            started = now()
            try:
                answer = point.read(await call(*args), args)
            except Exception as exc:  # noqa: BLE001 - whatever it is, it is the plugin's
                answer = self._failed(plugin, point, args, exc)
            took(point.name, plugin.NAME, now() - started)
            return answer

        return guarded

    def _rests(self, plugin: Plugin) -> bool:
        until = self._resting.get(plugin.NAME)
        if until is None:
            return False
        if self._complaints.clock.monotonic() < until:
            return True
        del self._resting[plugin.NAME]
        return False

    def _failed(
        self, plugin: Plugin, point: "_Point", args: tuple[Any, ...], error: Exception
    ) -> Status | None:
        pod = next((arg.key for arg in args if isinstance(arg, PodInfo)), "")
        if isinstance(error, PluginInterruptedError):
            self._resting[plugin.NAME] = self._complaints.clock.monotonic() + REST_SECONDS
        self._note(plugin, point.name, pod=pod, error=error)
        return bug_in(plugin, error) if point.is_asked else None

    def _note(self, plugin: Plugin, point: str, *, pod: str, error: Exception) -> None:
        self._observer.plugin_failed(point, plugin.NAME)
        self._complaints.add(plugin.NAME, point, pod=pod, error=error)

    def _held(self, plugin: Plugin, registered: ClusterEventWithHint) -> ClusterEventWithHint:
        if not isinstance(registered, ClusterEventWithHint):
            raise _wrong(registered, "a ClusterEventWithHint")
        hint = registered.hint
        if hint is None:
            return registered
        indexes = tuple(self._index(plugin, index) for index in registered.indexes)
        return ClusterEventWithHint(registered.event, self._hint(plugin, hint), indexes)

    def _index(self, plugin: Plugin, index: HintIndex) -> HintIndex:
        """Return *index*, which finds every pod where it raises."""

        def keys_of_pod(pod: PodInfo) -> Choices:
            try:
                return index.keys_of_pod(pod)
            except Exception as exc:  # noqa: BLE001 - whatever it is, it is the plugin's
                self._note(plugin, "HintIndex", pod=pod.key, error=exc)
                return ANYWHERE

        def keys_of_event(old: Any, new: Any) -> Iterable[Hashable] | None:
            try:
                return index.keys_of_event(old, new)
            except Exception as exc:  # noqa: BLE001 - whatever it is, it is the plugin's
                self._note(plugin, "HintIndex", pod="", error=exc)
                return None

        return HintIndex(keys_of_pod, keys_of_event)

    def _hint(self, plugin: Plugin, hint: QueueingHintFn) -> QueueingHintFn:
        def guarded(pod: Any, old: Any, new: Any) -> QueueingHint:
            try:
                answer = hint(pod, old, new)
                if isinstance(answer, QueueingHint):
                    return answer
                raise _wrong(answer, "a QueueingHint")
            except Exception as exc:  # noqa: BLE001 - trying in vain is better than a forgotten pod
                self._note(plugin, "QueueingHintFn", pod=pod.key, error=exc)
                return QueueingHint.QUEUE

        return guarded

    def _sort_key(
        self, plugin: Plugin, call: Callable[[QueuedPodInfo], Any]
    ) -> Callable[[QueuedPodInfo], "SortKey"]:
        def guarded(queued: QueuedPodInfo) -> SortKey:
            try:
                return SortKey(call(queued), queued.timestamp)
            except Exception as exc:  # noqa: BLE001 - a pod without a place must not be lost
                self._note(plugin, "QueueSort", pod=queued.key, error=exc)
                return SortKey(None, queued.timestamp)

        return guarded


_RESTS: Final = PluginInterruptedError(
    f"it held the event loop for too long; it is asked again after {REST_SECONDS:.0f} s"
)


class SortKey:
    """What a QueueSort plugin said; where it said nothing comparable, the older pod comes first."""

    __slots__ = ("_key", "_since")

    def __init__(self, key: Any, since: float) -> None:
        self._key = key
        self._since = since

    def __lt__(self, other: "SortKey") -> bool:
        try:
            return bool(self._key < other._key)
        except Exception:  # noqa: BLE001 - keys of any kind, compared as they like
            return self._since < other._since

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SortKey):
            return NotImplemented
        try:
            return bool(self._key == other._key)
        except Exception:  # noqa: BLE001 - keys of any kind, compared as they like
            return self._since == other._since


# What each extension point may answer.


def _status(answer: Any, _args: tuple[Any, ...]) -> Status | None:
    if answer is None:
        return None
    if not isinstance(answer, Status):
        raise _wrong(answer, "a Status or None")
    if not isinstance(answer.code, Code):
        raise _wrong(answer.code, "a Code in the Status")
    reasons: Any = answer.reasons
    if not (isinstance(reasons, tuple) and all(isinstance(reason, str) for reason in reasons)):
        raise _wrong(reasons, "a tuple of strings as the reasons of the Status")
    return None if answer.code is Code.SUCCESS else answer


def _pre_filter(answer: Any, args: tuple[Any, ...]) -> Status | PreFilterResult | None:
    gang = args[0].gang
    if not isinstance(gang, Gang | None):
        args[0].gang = None
        raise _wrong(gang, "a Gang or None as the gang of the state")
    if not isinstance(answer, PreFilterResult):
        return _status(answer, args)
    if not isinstance(answer.node_names, frozenset | set):
        raise _wrong(answer.node_names, "a frozenset of node names")
    return PreFilterResult(frozenset(answer.node_names))


def _verdict(answer: Any, args: tuple[Any, ...]) -> Verdict:
    if not isinstance(answer, Verdict):
        raise _wrong(answer, "a Verdict")
    rows = args[2].size
    rejections: tuple[Any, ...] = answer.rejections
    for rejection in rejections:
        if not isinstance(rejection, Rejection) or not isinstance(rejection.reason, str):
            raise _wrong(rejection, "a Rejection with a reason")
        if rejection.code not in _REJECTING:
            raise ValueError(f"{rejection.code!r} is no rejection")
        _check_column(rejection.where, rows, "b", "a mask")
    return answer


def _extensions(answer: Any, args: tuple[Any, ...]) -> Verdict | None:
    """Of args, the last is the table."""
    return None if answer is None else _verdict(answer, args[-3:])


def _scores(answer: Any, args: tuple[Any, ...]) -> Any:
    """Of Score, args[2] is the table; of Normalize, the scores."""
    if isinstance(answer, Status):
        return _status(answer, args) or Status.error("a Status of success is no score")
    _check_column(answer, args[2].size, "i", "scores")
    return answer.astype(np.int64, copy=False)


def _check_column(column: Any, rows: int, kind: str, what: str) -> None:
    needed = f"{what}: an array of {'bool' if kind == 'b' else 'int64'}, {rows} long"
    if not isinstance(column, np.ndarray):
        raise _wrong(column, needed)
    if column.dtype.kind != kind or column.shape != (rows,):
        raise ValueError(f"{needed} is needed, got {column.dtype} of shape {column.shape}")


def _post_filter(answer: Any, args: tuple[Any, ...]) -> PostFilterResult:
    if not isinstance(answer, PostFilterResult):
        raise _wrong(answer, "a PostFilterResult")
    if not isinstance(answer.nominated_node, str | None):
        raise _wrong(answer.nominated_node, "the name of the nominated node, or None")
    if not isinstance(answer.preemption, Preemption | None):
        raise _wrong(answer.preemption, "a Preemption or None")
    answer.status = _status(answer.status, args)
    return answer


def _pod_group_post_filter(answer: Any, args: tuple[Any, ...]) -> PodGroupPostFilterResult:
    if not isinstance(answer, PodGroupPostFilterResult):
        raise _wrong(answer, "a PodGroupPostFilterResult")
    return answer._replace(status=_status(answer.status, args))


def _permit(answer: Any, args: tuple[Any, ...]) -> tuple[Status | None, float]:
    match answer:
        case (status, int() | float() as seconds) if math.isfinite(seconds):
            return _status(status, args), float(seconds)
        case _:
            raise _wrong(answer, "a Status or None and a number of seconds")


def _placements(answer: Any, args: tuple[Any, ...]) -> Any:
    if isinstance(answer, Status):
        return _status(answer, args) or Status.error("a Status of success is no placement")
    if not isinstance(answer, list | tuple):
        raise _wrong(answer, "a list of Placements or a Status")
    for placement in answer:
        if not isinstance(placement, Placement):
            raise _wrong(placement, "a Placement")
    return answer


def _placement_score(answer: Any, args: tuple[Any, ...]) -> Any:
    if isinstance(answer, Status):
        return _status(answer, args) or Status.error("a Status of success is no score")
    if not isinstance(answer, int):
        raise _wrong(answer, "an int")
    return answer


def _placement_scores(answer: Any, args: tuple[Any, ...]) -> Any:
    if isinstance(answer, Status):
        return _status(answer, args) or Status.error("a Status of success is no score")
    scores = [_placement_score(score, args) for score in answer]
    if len(scores) != len(args[0]):
        raise ValueError(f"{len(args[0])} scores are needed, got {len(scores)}")
    return scores


def _ignored(_answer: Any, _args: tuple[Any, ...]) -> None:
    return None


def _wrong(answer: Any, needed: str) -> TypeError:
    return TypeError(f"{needed} is needed, got {type(answer).__name__}")


class _Point(NamedTuple):
    name: str
    """As in metrics (spec §8)."""
    read: Read
    is_asked: bool = True
    """Whether it answers at all; else it is only told."""


_SYNC: Final = {
    "placement_generate": _Point("PlacementGenerate", _placements),
    "placement_score": _Point("PlacementScore", _placement_score),
    "normalize_placement_scores": _Point("PlacementScoreExtensionNormalize", _placement_scores),
    "pre_enqueue": _Point("PreEnqueue", _status),
    "pre_filter": _Point("PreFilter", _pre_filter),
    "add_pods": _Point("PreFilterExtensionAddPod", _extensions),
    "remove_pods": _Point("PreFilterExtensionRemovePod", _extensions),
    "add_pod": _Point("PreFilterExtensionAddPod", _status),
    "remove_pod": _Point("PreFilterExtensionRemovePod", _status),
    "filter": _Point("Filter", _verdict),
    "post_filter": _Point("PostFilter", _post_filter),
    "pre_score": _Point("PreScore", _status),
    "score": _Point("Score", _scores),
    "normalize": _Point("ScoreExtensionNormalize", _scores),
    "reserve": _Point("Reserve", _status),
    "unreserve": _Point("Unreserve", _ignored, is_asked=False),
    "permit": _Point("Permit", _permit),
    "pre_bind_pre_flight": _Point("PreBindPreFlight", _status),
    "placement_feasible": _Point("PlacementFeasible", _status),
}
_ASYNC: Final = {
    "pod_group_post_filter": _Point("PodGroupPostFilter", _pod_group_post_filter),
    "pre_bind": _Point("PreBind", _status),
    "bind": _Point("Bind", _status),
    "post_bind": _Point("PostBind", _ignored, is_asked=False),
}
"""By method: where plugins are called."""
_BY_ROWS: Final = frozenset({"add_pods", "remove_pods"})
"""Of the scalar form the guard stands before each pod: so it knows which node a plugin fails on."""
