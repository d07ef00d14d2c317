"""Metrics of kube-scheduler that berth does not export, with the reasons."""

from collections.abc import Mapping
from typing import Final

ABSENT: Final[Mapping[str, str]] = {
    "go_*": "Metrics of the Go runtime; see python_gc_...",
    "aggregator_*": "From API server code that is linked into kube-scheduler; always 0 there.",
    "apiserver_*": "From API server code that is linked into kube-scheduler; always 0 there.",
    "cardinality_enforcement_unexpected_categorizations_total": (
        "berth merges values that --allow-metric-labels does not name when metrics are scraped,"
        " without counting them."
    ),
    "disabled_metrics_total": (
        "berth leaves out the families that --disabled-metrics names, without counting them."
    ),
    "hidden_metrics_total": "berth does not count the families that it hides.",
    "rest_client_exec_plugin_*": (
        "The Kubernetes client library runs credential plugins without metrics."
    ),
    "rest_client_transport_*": "berth has a single transport and caches none.",
    "workqueue_*": (
        "kube-scheduler's only work queue is that of the serving certificate; see"
        " berth_write_lane_..."
    ),
    "scheduler_get_node_hint_duration_seconds": (
        "A hint names the node that was best for another pod. berth has none: pods of a template"
        " share answers, and every node counts."
    ),
    "scheduler_store_schedule_results_duration_seconds": (
        "berth does not store the ranking for the next pod."
    ),
    "scheduler_volume_binder_cache_requests_total": "kube-scheduler never counts it either.",
}
"""Family, or all families that begin so, to why it is absent. A ``*`` ends a beginning."""
