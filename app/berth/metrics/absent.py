"""What kube-scheduler exports and berth does not, with the reasons."""

from collections.abc import Mapping
from typing import Final

ABSENT: Final[Mapping[str, str]] = {
    "go_*": "Of the Go runtime. python_gc_... is Python's counterpart.",
    "aggregator_*": "Of the API server's code, linked into kube-scheduler; always 0 there.",
    "apiserver_*": "Of the API server's code, linked into kube-scheduler; always 0 there.",
    "cardinality_enforcement_unexpected_categorizations_total": (
        "Values that --allow-metric-labels does not name are merged when metrics are read; how"
        " often they occur is not counted."
    ),
    "disabled_metrics_total": "Families that --disabled-metrics names are just left out.",
    "hidden_metrics_total": "No family is deprecated.",
    "rest_client_exec_plugin_*": (
        "Credential plugins are run by the Kubernetes client library, which does not report them."
    ),
    "rest_client_transport_*": "There is one transport, made once; nothing is cached.",
    "workqueue_*": (
        "The only work queue is that of the serving certificate's controller. berth's queues of"
        " writes are berth_write_lane_..."
    ),
    "scheduler_get_node_hint_duration_seconds": (
        "Hints from one pod to the next are not looked up: every node is filtered for every pod."
    ),
    "scheduler_store_schedule_results_duration_seconds": (
        "Results are not stored for the next pod, for the same reason."
    ),
    "scheduler_async_api_call_*": "Only with SchedulerAsyncAPICalls, which is off.",
    "scheduler_pending_async_api_calls": "Only with SchedulerAsyncAPICalls, which is off.",
    "scheduler_podgroup_*": "Only with GenericWorkload, which is off.",
    "scheduler_volume_binder_cache_requests_total": "Never counted by kube-scheduler either.",
}
"""Family, or all families that begin so, to why it is not there. A ``*`` ends a beginning."""
