"""Jobs that have ended are deleted once ``ttlSecondsAfterFinished`` have passed (KEP-592)."""

from collections.abc import Callable

from berth.cluster.actions import Delete
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.job import JOBS
from berth.cluster.controllers.job_pods import JobView
from berth.cluster.controllers.table import Table
from berth.cluster.times import seconds_of
from berth.runtime.clock import Clock


class TTLAfterFinishedController:
    """Decides which Jobs to delete. Reads a table, writes nothing."""

    name = "ttl-after-finished"

    def __init__(self, jobs: Table[JobView], *, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def job_changed(_old: JobView | None, new: JobView | None) -> None:
            if new is not None and "ttlSecondsAfterFinished" in new.spec and new.end is not None:
                enqueue(new.metadata.key)

        self._jobs.listen(job_changed)

    def plan(self, key: str) -> Plan:
        job = self._jobs.get(key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return NOTHING
        seconds, end = job.spec.get("ttlSecondsAfterFinished"), job.end
        if seconds is None or end is None or not end.get("lastTransitionTime"):
            return NOTHING
        wait = seconds_of(end["lastTransitionTime"]) + seconds - self._clock.now()
        if wait > 0:
            return Plan(again=wait)
        meta = job.metadata
        deletion = Delete(
            JOBS.path_of(meta.namespace, meta.name),
            meta.uid,
            propagation="Foreground",
            resource_version=meta.resource_version,  # its time may have been changed since
        )
        return Plan([deletion])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: the deletion is seen, or tried again."""


def new_controller(context: ControllerContext) -> TTLAfterFinishedController:
    return TTLAfterFinishedController(context.table("jobs.batch", JobView), clock=context.clock)
