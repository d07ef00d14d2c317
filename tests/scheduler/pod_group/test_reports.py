"""Conditions of groups, when the informer is behind the writes (spec G7.1, 1.37 spec N8.1)."""

import msgspec

from berth.kube.objects.pod_group import GroupKey, PodGroup, PodGroupCondition
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.listers import Lister
from berth.scheduler.metrics.scheduler_metrics import PodGroupMetrics
from berth.scheduler.pod_group.reports import PodGroupReports
from tests.scheduler.pod_group.building import group

KEY = GroupKey("default", "g")


class Written:
    """Keeps the statuses of conditions, and tells no informer."""

    def __init__(self) -> None:
        self.statuses: list[str] = []

    def pod_group_condition(self, group: PodGroup, condition: PodGroupCondition) -> None:
        self.statuses.append(condition.status)


def reports_of(groups: Lister[PodGroup], written: Written) -> PodGroupReports:
    return PodGroupReports(groups, reporter=written, metrics=PodGroupMetrics(), clock=FakeClock())


def test_a_group_stays_scheduled_before_the_informer_shows_it() -> None:
    written = Written()
    reports = reports_of(Lister([group(min_count=2)]), written)
    for result in ("unschedulable", "scheduled", "unschedulable", "error"):
        reports.tell(KEY, result=result, message=result)
    assert written.statuses == ["False", "True"]


def test_another_group_of_the_name_was_not_scheduled() -> None:
    first, written = group(min_count=2), Written()
    groups = Lister([first])
    reports = reports_of(groups, written)
    reports.tell(KEY, result="scheduled", message="")
    metadata = msgspec.structs.replace(first.metadata, uid="another")
    groups.on_update(first, msgspec.structs.replace(first, metadata=metadata))
    reports.tell(KEY, result="unschedulable", message="")
    assert written.statuses == ["True", "False"]
