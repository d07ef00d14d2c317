"""Statuses of a profile whose plugins refuse or fail, in kube-scheduler's words (§2.3-2.9)."""

from collections.abc import Iterable

import numpy as np

from berth.scheduler.framework.interface import MAX_NODE_SCORE, Plugin
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Ints, Rows, Verdict


def bug_in(plugin: Plugin, exc: Exception) -> Status:
    """Return what a plugin that raised *exc* is taken to have answered."""
    return Status(Code.ERROR, (repr(exc),), plugin.NAME)


def refused(status: Status, point: str, plugin: Plugin) -> Status:
    """Name the author of a rejection, word anything else as a failure."""
    return status.of(plugin.NAME) if status.is_rejected else failed(status, point, plugin)


def failed(status: Status, point: str, plugin: Plugin) -> Status:
    """Word a failure that is no rejection as kube-scheduler does (spec §2.3-2.9)."""
    text = f'running {point} plugin "{plugin.NAME}": {status.message}'
    return Status(Code.ERROR, (text,), plugin.NAME)


def score_failed(status: Status, what: str, plugin: Plugin) -> Status:
    """Word an error of Score or of its normalising, of all plugins, as kube-scheduler does."""
    text = f'{what} Score plugins: plugin "{plugin.NAME}" failed with: {status.message}'
    return Status(Code.ERROR, (text,), plugin.NAME)


def filter_error(plugin: str, message: str) -> str:
    """Word an error of Filter, which ends the attempt, as kube-scheduler does (spec §2.5)."""
    return f'running "{plugin}" filter plugin: {message}'


def filter_failed(plugin: str, message: str) -> Status:
    """Return the error of Filter that :func:`filter_error` words."""
    return Status(Code.ERROR, (filter_error(plugin, message),), plugin)


def with_worded_errors(verdict: Verdict, plugin: Plugin) -> Verdict:
    if all(rejection.code is not Code.ERROR for rejection in verdict.rejections):
        return verdict
    return Verdict(
        tuple(
            r._replace(reason=filter_error(plugin.NAME, r.reason)) if r.code is Code.ERROR else r
            for r in verdict.rejections
        )
    )


def failed_rows(answer: Verdict | Status, rows: Rows) -> dict[int, Status]:
    """Return by row what a PreFilter extension failed with; of a bug all *rows* are the victims."""
    if isinstance(answer, Status):
        return dict.fromkeys(rows.tolist(), answer)
    statuses = ((row, answer.status_of(row)) for row in dict.fromkeys(rows.tolist()))
    return {row: Status(Code.ERROR, said.reasons) for row, said in statuses if said is not None}


def invalid_score(plugin: Plugin, score: int) -> Status:
    text = (
        f'plugin "{plugin.NAME}" returns an invalid score {score}, it should in the range of '
        f"[0, {MAX_NODE_SCORE}] after normalizing"
    )
    return Status(Code.ERROR, (text,), plugin.NAME)


def no_common_nodes(plugins: Iterable[str]) -> Status:
    names = sorted(plugins)
    if len(names) == 1:
        text = f"node(s) didn't satisfy plugin {names[0]}"
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,), names[0])
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
    return Status.unresolvable(text)


def worst_score(scores: Ints) -> int:
    """Return a score that is out of range, if any is, else the highest."""
    # As unsigned numbers the negative ones are large: one look finds both.
    return int(np.maximum.reduce(scores.view(np.uint64), initial=0).view(np.int64))
