"""Problems of a scheduler, in words for people."""

from collections.abc import Iterator, Sequence
from typing import Final

from berth.scheduler.metrics.overview import Numbers, PendingPod, Problem
from berth.service.overview.oldest_pending import LONG

LAG_BOUND: Final = 0.1
"""Seconds of loop lag above which the process is near its limit (docs/operations.md)."""
PODS_NAMED: Final = 3


def problems(
    numbers: Numbers,
    oldest: Sequence[PendingPod],
    *,
    is_synced: bool,
    leader: str,
    stale: str,
    recent_errors: float,
) -> Iterator[Problem]:
    """Yield what is wrong, what matters most first.

    *stale* says in which way the caches are not up to date, "" if they are. *recent_errors* is how
    many attempts ended in an error within the last minute.
    """
    if not is_synced:
        yield Problem("The state of the cluster is not known yet")
    if not numbers.leading:
        yield Problem(f"Not leading: standby. {leader or 'Nobody'} leads")
    if stale:
        yield Problem(stale[0].upper() + stale[1:])
    if numbers.leading and numbers.long_pending:
        named = [each.pod for each in oldest if each.age_seconds > LONG][:PODS_NAMED]
        pods = "1 pod has" if numbers.long_pending == 1 else f"{numbers.long_pending} pods have"
        yield Problem(f"{pods} been pending for more than {LONG / 60:.0f} minutes", tuple(named))
    if errors := round(recent_errors):
        attempts = "1 attempt" if errors == 1 else f"{errors} attempts"
        yield Problem(f"{attempts} failed with an error within the last minute")
    if numbers.loop_lag_seconds > LAG_BOUND:
        lag, bound = f"{numbers.loop_lag_seconds * 1e3:.0f} ms", f"{LAG_BOUND * 1e3:.0f} ms"
        yield Problem(f"The event loop is {lag} late; above {bound} the process is near its limit")
