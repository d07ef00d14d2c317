"""Feature gates that kinds depend on, and the group of those that pods form."""

from typing import Final

GENERIC_WORKLOAD: Final = "GenericWorkload"
WORKLOAD_WITH_JOB: Final = "WorkloadWithJob"

SCHEDULING: Final = "scheduling.k8s.io"
