"""The diagnosis of a pod that fits nowhere, as masks, put into words when asked (spec §2.8)."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Ints, Mask, Rejection, Rows, Verdict

NO_NODES = "no nodes available to schedule pods"


class PluginVerdict(NamedTuple):
    """What one filter plugin held against the rows that had come so far."""

    plugin: str
    verdict: Verdict


class Diagnosis(msgspec.Struct):
    """What PreFilter and Filter said about all nodes in one attempt."""

    num_all_nodes: int
    verdicts: list[PluginVerdict] = msgspec.field(default_factory=list)
    """In the order of the plugins; each row appears under the first plugin that rejected it."""
    statuses: dict[int, Status] = msgspec.field(default_factory=dict)
    """Rows evaluated one by one (the nominated node, extenders); these win over ``verdicts``."""
    beside: set[int] = msgspec.field(default_factory=set)
    """Rows that were rejected beside the pods nominated to them; also in ``verdicts`` or
    ``statuses``."""
    absent: Status | None = None
    """What counts for nodes that were not evaluated, because PreFilter left them out."""
    pre_filter_message: str = ""
    unschedulable_plugins: set[str] = msgspec.field(default_factory=set)
    pending_plugins: set[str] = msgspec.field(default_factory=set)

    def status_of(self, row: int) -> Status | None:
        """Return why the node in *row* was rejected; None if nobody evaluated it or it passed."""
        explicit = self.statuses.get(row)
        if explicit is not None:
            return explicit
        for plugin, verdict in self.verdicts:
            status = verdict.status_of(row)
            if status is not None:
                return status.of(plugin)
        return None

    def rows_by_status(self) -> Iterator[tuple[Status, Rows]]:
        """Yield statuses, each with rows that have it: in all, the rows with an explicit one."""
        for row, of_row in self.statuses.items():
            yield of_row, np.array([row])
        for plugin, verdict in self.verdicts:
            rejected = verdict.rejected()
            if rejected is None:
                continue
            rows = rejected.nonzero()[0]
            if self.statuses:
                rows = rows[~np.isin(rows, [*self.statuses])]
            if len(verdict.rejections) == 1:
                if len(rows):
                    reason, code, _ = verdict.rejections[0]
                    yield Status(code, (reason,), plugin), rows
                continue
            reasons = _numbered([rejection.where[rows] for rejection in verdict.rejections])
            for number in np.unique(reasons).tolist():
                of_number = rows[reasons == number]
                status = verdict.status_of(int(of_number[0]))
                assert status is not None, "a rejected row has a status"
                yield status.of(plugin), of_number

    def add_part(self, part: "Diagnosis", nodes: NodeTable, rows: Rows) -> None:
        """Take over what *part* says of a table that begins with *rows* of *nodes*.

        Errors as statuses, in the order of *rows*.
        """
        single = np.zeros(len(rows), bool)
        for plugin, verdict in part.verdicts:
            rejections = []
            for rejection in verdict.rejections:
                where = rejection.where[: len(rows)]
                if rejection.code is Code.ERROR:
                    single |= where
                mask = nodes.no_rows()
                mask[rows[where]] = True
                rejections.append(rejection._replace(where=mask))
            self.verdicts.append(PluginVerdict(plugin, Verdict(tuple(rejections))))
        single[[i for i in part.statuses if i < len(rows)]] = True
        for i in single.nonzero()[0].tolist():
            status = part.status_of(i)
            assert status is not None, "a rejected row has a status"
            self.statuses[int(rows[i])] = status

    def rows_with(self, code: Code, nodes: NodeTable) -> Mask:
        """Return the nodes whose status has *code*, their own or the absent one."""
        mask = nodes.no_rows()
        if self.absent is not None and self.absent.code is code:
            mask |= nodes.exists & ~self.rejected(nodes)
        for _, verdict in self.verdicts:
            mask |= verdict.rows_with(code)
        if self.statuses:
            mask[list(self.statuses)] = False
            mask[[row for row, status in self.statuses.items() if status.code is code]] = True
        return mask

    def rejected(self, nodes: NodeTable) -> Mask:
        """Return the rows with an explicit status."""
        mask = nodes.no_rows()
        for _, verdict in self.verdicts:
            rejected = verdict.rejected()
            if rejected is not None:
                mask |= rejected
        mask[list(self.statuses)] = True
        return mask

    def reasons(self) -> Counter[str]:
        """Count, per reason, the nodes it holds for."""
        counts: Counter[str] = Counter()
        explicit = len(self.statuses)
        single = list(self.statuses)
        for _, verdict in self.verdicts:
            explicit += verdict.num_rejected
            rejected = verdict.rejected() if single else None
            if rejected is not None:
                explicit -= _count(rejected[single])
            for rejection in verdict.rejections:
                where = rejection.where
                counts[rejection.reason] += _count(where) - (_count(where[single]) if single else 0)
        for status in self.statuses.values():
            counts.update(status.reasons)
        if self.absent is not None and explicit < self.num_all_nodes:
            for reason in self.absent.reasons:
                counts[reason] += self.num_all_nodes - explicit
        return +counts

    def message(self, post_filter_message: str = "") -> str:
        """Return the FitError text, byte for byte (spec §2.8)."""
        if self.num_all_nodes == 0:
            return NO_NODES
        text = f"0/{self.num_all_nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            entries = sorted(f"{count} {reason}" for reason, count in self.reasons().items())
            if entries:
                text += f" {', '.join(entries)}."
        return f"{text} {post_filter_message}" if post_filter_message else text

    def error(
        self, nodes: NodeTable | None = None, *, naming_for: Collection[str] = ()
    ) -> Status | None:
        """Return the first error a filter reported, which aborts the attempt; the smallest text.

        Of the plugins *naming_for* it names the nodes that they have failed on, unless they do so
        themselves; kube-scheduler names none. A plugin that raises was asked about all of *nodes*
        at once, so none can be named.
        """
        errors = [
            Status(Code.ERROR, (rejection.reason,), plugin)
            if nodes is None or plugin not in naming_for
            else Status(Code.ERROR, (rejection.reason + _on(rejection, nodes),), plugin)
            for plugin, verdict in self.verdicts
            for rejection in verdict.rejections
            if rejection.code is Code.ERROR and rejection.where.any()
        ]
        errors += [status for status in self.statuses.values() if status.code is Code.ERROR]
        return min(errors, key=lambda status: status.message, default=None)


def _numbered(masks: Sequence[Mask]) -> Ints:
    """Return one number for each position, the same where all *masks* are the same."""
    numbers = np.zeros(len(masks[0]), np.int64)
    for i, mask in enumerate(masks):
        numbers = numbers * 2 + mask
        if i % 32 == 31:  # before they become too large
            numbers = np.unique(numbers, return_inverse=True)[1]
    return numbers


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))  # a tenth of what sum() takes


def _on(error: Rejection, nodes: NodeTable) -> str:
    names = sorted(nodes.names(np.flatnonzero(error.where).tolist()))
    if any(name in error.reason for name in names):
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f" (node {names[0]}{more})"
