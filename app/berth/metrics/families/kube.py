"""Every family that berth shares with kube-scheduler 1.36 (spec §8), in the spec's order."""

from typing import Final

from berth.metrics.family import Stability, counter, exponential, gauge, histogram

ALPHA, BETA, STABLE = Stability.ALPHA, Stability.BETA, Stability.STABLE

_ATTEMPT: Final = exponential(0.001, 2, 15)
_POINT: Final = exponential(0.0001, 2, 12)
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
_LONG: Final = exponential(0.01, 2, 20)

SCHEDULE_ATTEMPTS: Final = counter(
    name="scheduler_schedule_attempts_total",
    stability=STABLE,
    text="Attempts to schedule pods, by outcome: unschedulable means that no node takes the pod,"
    " error that the attempt itself broke.",
    labels=("profile", "result"),
)
ATTEMPT_DURATION: Final = histogram(
    name="scheduler_scheduling_attempt_duration_seconds",
    stability=STABLE,
    text="Seconds from the start of an attempt to its outcome, the binding included.",
    labels=("profile", "result"),
    buckets=_ATTEMPT,
)
ALGORITHM_DURATION: Final = histogram(
    name="scheduler_scheduling_algorithm_duration_seconds",
    stability=ALPHA,
    text="Seconds an attempt took to find a node, or to find that there is none.",
    buckets=_ATTEMPT,
)
PREEMPTION_VICTIMS: Final = histogram(
    name="scheduler_preemption_victims",
    stability=STABLE,
    text="How many pods were chosen to be evicted for another one.",
    buckets=exponential(1, 2, 7),
)
PREEMPTION_ATTEMPTS: Final = counter(
    name="scheduler_preemption_attempts_total",
    stability=STABLE,
    text="How often DefaultPreemption was asked to make room for a pod.",
)
PENDING_PODS: Final = gauge(
    name="scheduler_pending_pods",
    stability=STABLE,
    text="Pods that wait, by queue; gated are those that PreEnqueue plugins hold back.",
    labels=("queue",),
)
IN_FLIGHT_EVENTS: Final = gauge(
    name="scheduler_inflight_events",
    stability=ALPHA,
    text="Events that are kept for pods in flight, and as PodPopped those pods.",
    labels=("event",),
)
GOROUTINES: Final = gauge(
    name="scheduler_goroutines",
    stability=BETA,
    text="Work under way beside the scheduling cycle, by what it does.",
    labels=("operation",),
)
EVENT_HANDLING_DURATION: Final = histogram(
    name="scheduler_event_handling_duration_seconds",
    stability=ALPHA,
    text="Seconds to take in one change of the cluster, moving of waiting pods included.",
    labels=("event",),
    buckets=_POINT,
)
POD_SCHEDULING_SLI_DURATION: Final = histogram(
    name="scheduler_pod_scheduling_sli_duration_seconds",
    stability=BETA,
    text="Seconds from when a pod could first be tried until it was bound, over all attempts.",
    labels=("attempts",),
    buckets=_LONG,
)
POD_SCHEDULING_ATTEMPTS: Final = histogram(
    name="scheduler_pod_scheduling_attempts",
    stability=STABLE,
    text="How many attempts a pod needed until it was bound.",
    buckets=exponential(1, 2, 5),
)
POD_SCHEDULED_AFTER_FLUSH: Final = counter(
    name="scheduler_pod_scheduled_after_flush_total",
    stability=ALPHA,
    text="Pods that were bound only because waiting pods are tried again after five minutes.",
)
EXTENSION_POINT_DURATION: Final = histogram(
    name="scheduler_framework_extension_point_duration_seconds",
    stability=STABLE,
    text="Seconds that all plugins of an extension point took together.",
    labels=("extension_point", "profile", "status"),
    buckets=_POINT,
)
PLUGIN_DURATION: Final = histogram(
    name="scheduler_plugin_execution_duration_seconds",
    stability=ALPHA,
    text="Seconds that one call of a plugin took, in a tenth of the cycles. One call of Filter or"
    " Score judges all nodes.",
    labels=("extension_point", "plugin", "status"),
    buckets=_PLUGIN,
)
QUEUEING_HINT_DURATION: Final = histogram(
    name="scheduler_queueing_hint_execution_duration_seconds",
    stability=ALPHA,
    text="Seconds that a plugin took to say whether an event is worth another attempt.",
    labels=("event", "hint", "plugin"),
    buckets=_PLUGIN,
)
QUEUE_INCOMING_PODS: Final = counter(
    name="scheduler_queue_incoming_pods_total",
    stability=STABLE,
    text="Pods that were put into a queue, by the event that caused it.",
    labels=("event", "queue"),
)
PERMIT_WAIT_DURATION: Final = histogram(
    name="scheduler_permit_wait_duration_seconds",
    stability=BETA,
    text="Seconds that pods with a node waited for Permit plugins.",
    labels=("result",),
    buckets=_ATTEMPT,
)
CACHE_SIZE: Final = gauge(
    name="scheduler_cache_size",
    stability=ALPHA,
    text="Nodes, pods and assumed pods in the cache.",
    labels=("type",),
)
UNSCHEDULABLE_PODS: Final = gauge(
    name="scheduler_unschedulable_pods",
    stability=BETA,
    text="Waiting pods by plugin that rejected them; a pod counts once for each.",
    labels=("plugin", "profile"),
)
PLUGIN_EVALUATION: Final = counter(
    name="scheduler_plugin_evaluation_total",
    stability=BETA,
    text="How often plugins had a say; Filter and Score count each node.",
    labels=("extension_point", "plugin", "profile"),
)
BATCH_ATTEMPTS: Final = counter(
    name="scheduler_batch_attempts_total",
    stability=ALPHA,
    text="Attempts by what became of a hint from the pod before; there never is one.",
    labels=("profile", "result"),
)
BATCH_CACHE_FLUSHED: Final = counter(
    name="scheduler_batch_cache_flushed_total",
    stability=ALPHA,
    text="Attempts that found a node and left no hint for the next pod, by reason.",
    labels=("profile", "reason"),
)
PREEMPTION_TASK_DURATION: Final = histogram(
    name="scheduler_preemption_goroutines_duration_seconds",
    stability=ALPHA,
    text="Seconds until the victims of one preemption were evicted.",
    labels=("result",),
    buckets=_LONG,
)
PREEMPTION_TASK_EXECUTIONS: Final = counter(
    name="scheduler_preemption_goroutines_execution_total",
    stability=ALPHA,
    text="Preemptions carried out, by how that ended.",
    labels=("result",),
)
RESOURCE_CLAIM_CREATES: Final = counter(
    name="scheduler_resourceclaim_creates_total",
    stability=ALPHA,
    text="Claims that were to be created for extended resources of pods, by how that ended.",
    labels=("status",),
)
DEVICE_WAITS: Final = counter(
    name="scheduler_dra_bindingconditions_allocations_total",
    stability=ALPHA,
    text="Attempts that had to wait until devices of a driver get ready, by how that ended.",
    labels=("profile", "driver", "status"),
)
DEVICE_WAIT_DURATION: Final = histogram(
    name="scheduler_dra_bindingconditions_wait_duration_seconds",
    stability=ALPHA,
    text="Seconds that PreBind waited until devices of a driver got ready, or did not.",
    labels=("profile", "driver", "status"),
    buckets=exponential(0.1, 2, 14),
)
VOLUME_STAGE_ERRORS: Final = counter(
    name="scheduler_volume_scheduling_stage_error_total",
    stability=ALPHA,
    text="Errors with the volumes of pods: while nodes are judged (predicate), when volumes are"
    " taken for a pod (assume), until they are bound (bind).",
    labels=("operation",),
)

# From the libraries that all Kubernetes components share.

LEADER: Final = gauge(
    name="leader_election_master_status",
    stability=ALPHA,
    text="1 while this process leads, by name of the lease.",
    labels=("name",),
)
LEADER_SLOW_PATH: Final = counter(
    name="leader_election_slowpath_total",
    stability=ALPHA,
    text="How often the lease could not be renewed at once and had to be read first, by its name.",
    labels=("name",),
)
_REQUEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_REQUEST_BYTES: Final = (
    64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0,
)  # fmt: skip
REQUESTS: Final = counter(
    name="rest_client_requests_total",
    stability=ALPHA,
    text="Requests to the API server by method and status; <error> when no answer came.",
    labels=("code", "host", "method"),
)
REQUEST_DURATION: Final = histogram(
    name="rest_client_request_duration_seconds",
    stability=ALPHA,
    text="Seconds from a request to the API server to its whole answer.",
    labels=("host", "verb"),
    buckets=_REQUEST_SECONDS,
)
RATE_LIMITER_DURATION: Final = histogram(
    name="rest_client_rate_limiter_duration_seconds",
    stability=ALPHA,
    text="Seconds that a request was held back by the client's own rate limit.",
    labels=("host", "verb"),
    buckets=_REQUEST_SECONDS,
)
REQUEST_SIZE: Final = histogram(
    name="rest_client_request_size_bytes",
    stability=ALPHA,
    text="Bytes in the bodies of requests to the API server.",
    labels=("host", "verb"),
    buckets=_REQUEST_BYTES,
)
RESPONSE_SIZE: Final = histogram(
    name="rest_client_response_size_bytes",
    stability=ALPHA,
    text="Bytes in the bodies of the API server's answers.",
    labels=("host", "verb"),
    buckets=_REQUEST_BYTES,
)
BUILD_INFO: Final = gauge(
    name="kubernetes_build_info",
    stability=BETA,
    text="Always 1; which kube-scheduler this is like, and which berth it is.",
    labels=(
        "build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version",
        "major", "minor", "platform",
    ),
)  # fmt: skip
VERSION_INFO: Final = gauge(
    name="version_info",
    stability=ALPHA,
    text="Always 1; the release whose behaviour is offered, and the oldest it works with.",
    labels=("binary", "component", "emulation", "min_compat"),
)
FEATURE_ENABLED: Final = gauge(
    name="kubernetes_feature_enabled",
    stability=BETA,
    text="1 for feature gates that are on; they cannot be switched, and are as 1.36 has them.",
    labels=("name", "stage"),
)
REGISTERED_METRICS: Final = counter(
    name="registered_metrics_total",
    stability=BETA,
    text="Families that can be exported, by stability.",
    labels=("deprecated_version", "stability_level"),
)
