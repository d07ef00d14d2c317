"""Every family that berth shares with kube-scheduler 1.36 (spec §8), in the spec's order."""

from typing import Final

from berth.kube.informer.reflector import PROCESSING_SECONDS
from berth.runtime.metrics import Stability, counter, exponential, gauge, histogram

ALPHA, BETA, STABLE = Stability.ALPHA, Stability.BETA, Stability.STABLE

_ATTEMPT: Final = exponential(0.001, 2, 15)
_POINT: Final = exponential(0.0001, 2, 12)
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
_LONG: Final = exponential(0.01, 2, 20)

SCHEDULE_ATTEMPTS: Final = counter(
    name="scheduler_schedule_attempts_total",
    stability=STABLE,
    text="Number of attempts to schedule pods, by result. unschedulable means that no node"
    " fits, error that the attempt failed.",
    labels=("profile", "result"),
)
ATTEMPT_DURATION: Final = histogram(
    name="scheduler_scheduling_attempt_duration_seconds",
    stability=STABLE,
    text="Duration of an attempt in seconds, including the binding.",
    labels=("profile", "result"),
    buckets=_ATTEMPT,
)
ALGORITHM_DURATION: Final = histogram(
    name="scheduler_scheduling_algorithm_duration_seconds",
    stability=ALPHA,
    text="Duration of the scheduling algorithm in seconds.",
    buckets=_ATTEMPT,
    beta_since="1.37",
)
POD_GROUP_ATTEMPTS: Final = counter(
    name="scheduler_podgroup_schedule_attempts_total",
    stability=ALPHA,
    text="Number of attempts to schedule pod groups, by result.",
    labels=("result", "profile"),
)
POD_GROUP_ATTEMPT_DURATION: Final = histogram(
    name="scheduler_podgroup_scheduling_attempt_duration_seconds",
    stability=ALPHA,
    text="Duration of an attempt to schedule a pod group in seconds, without the bindings.",
    labels=("result", "profile"),
    buckets=_ATTEMPT,
)
POD_GROUP_ALGORITHM_DURATION: Final = histogram(
    name="scheduler_podgroup_scheduling_algorithm_duration_seconds",
    stability=ALPHA,
    text="Duration of trying all pods of a group in seconds.",
    buckets=_ATTEMPT,
)
WORKLOAD_PREEMPTION_ATTEMPTS: Final = counter(
    name="scheduler_workload_preemption_attempts_total",
    stability=ALPHA,
    text="Number of preemptions that pod groups have begun, by result.",
    labels=("result",),
)
WORKLOAD_PREEMPTION_VICTIMS: Final = histogram(
    name="scheduler_workload_preemption_victims",
    stability=ALPHA,
    text="Number of victims of a preemption by a pod group.",
    buckets=exponential(1, 2, 11),
)
PREEMPTION_WORKLOAD_DISRUPTIONS: Final = histogram(
    name="scheduler_preemption_workload_disruptions",
    stability=ALPHA,
    text="Number of pod groups that a preemption evicts as a whole, by kind of the preemptor.",
    labels=("preemptor",),
    buckets=exponential(1, 2, 11),
)
PREEMPTION_EVALUATION_DURATION: Final = histogram(
    name="scheduler_preemption_evaluation_duration_seconds",
    stability=ALPHA,
    text="Duration of the search for victims in seconds, by kind of the preemptor and result.",
    labels=("preemptor", "result"),
    buckets=exponential(0.001, 2, 16),
)
PREEMPTION_EXECUTION_DURATION: Final = histogram(
    name="scheduler_preemption_execution_duration_seconds",
    stability=ALPHA,
    text="Duration of evicting victims in seconds, by kind of the preemptor and result.",
    labels=("preemptor", "result"),
    buckets=exponential(0.001, 2, 16),
)
PREEMPTION_PDB_VIOLATIONS: Final = counter(
    name="scheduler_preemption_pdb_violations_total",
    stability=ALPHA,
    text="Number of victims that their disruption budgets would rather keep, by kind of the"
    " preemptor.",
    labels=("preemptor",),
)
GENERATED_PLACEMENTS: Final = counter(
    name="scheduler_generated_placements_total",
    stability=ALPHA,
    text="Number of parts of the cluster in which pod groups were tried.",
    labels=("profile",),
)
PLACEMENT_EVALUATIONS: Final = counter(
    name="scheduler_placement_evaluations_total",
    stability=ALPHA,
    text="Number of trials of a pod group in a part of the cluster: feasible or infeasible.",
    labels=("result", "profile"),
)
PLACEMENT_EVALUATION_DURATION: Final = histogram(
    name="scheduler_placement_evaluation_duration_seconds",
    stability=ALPHA,
    text="Duration of a trial of a pod group in a part of the cluster in seconds.",
    labels=("result", "profile"),
    buckets=_ATTEMPT,
)
PREEMPTION_VICTIMS: Final = histogram(
    name="scheduler_preemption_victims",
    stability=STABLE,
    text="Number of victims of a preemption.",
    buckets=exponential(1, 2, 7),
)
PREEMPTION_ATTEMPTS: Final = counter(
    name="scheduler_preemption_attempts_total",
    stability=STABLE,
    text="Number of preemption attempts.",
)
PENDING_PODS: Final = gauge(
    name="scheduler_pending_pods",
    stability=STABLE,
    text="Number of pending pods, by queue. PreEnqueue plugins hold back gated pods.",
    labels=("queue",),
)
QUEUED_ENTITIES: Final = gauge(
    name="scheduler_queued_entities",
    stability=ALPHA,
    text="Number of pods and pod groups that wait, by queue. Pods of a group do not count.",
    labels=("queue", "type"),
    since="1.37",
)
IN_FLIGHT_EVENTS: Final = gauge(
    name="scheduler_inflight_events",
    stability=ALPHA,
    text="Number of events kept for pods in flight, and of these pods as PodPopped.",
    labels=("event",),
)
GOROUTINES: Final = gauge(
    name="scheduler_goroutines",
    stability=BETA,
    text="Number of running tasks beside the scheduling cycle, by operation.",
    labels=("operation",),
)
EVENT_HANDLING_DURATION: Final = histogram(
    name="scheduler_event_handling_duration_seconds",
    stability=ALPHA,
    text="Duration of handling a watch event in seconds, including requeued pods.",
    labels=("event",),
    buckets=_POINT,
)
POD_SCHEDULING_SLI_DURATION: Final = histogram(
    name="scheduler_pod_scheduling_sli_duration_seconds",
    stability=BETA,
    text="Time from the first attempt being possible until a pod was bound, in seconds, over"
    " all attempts.",
    labels=("attempts",),
    buckets=_LONG,
)
POD_SCHEDULING_ATTEMPTS: Final = histogram(
    name="scheduler_pod_scheduling_attempts",
    stability=STABLE,
    text="Number of attempts until a pod was bound.",
    buckets=exponential(1, 2, 5),
)
POD_SCHEDULED_AFTER_FLUSH: Final = counter(
    name="scheduler_pod_scheduled_after_flush_total",
    stability=ALPHA,
    text="Number of pods that were bound after an attempt without an event, after five minutes.",
)
EXTENSION_POINT_DURATION: Final = histogram(
    name="scheduler_framework_extension_point_duration_seconds",
    stability=STABLE,
    text="Duration of all plugins of an extension point, in seconds.",
    labels=("extension_point", "profile", "status"),
    buckets=_POINT,
)
PLUGIN_DURATION: Final = histogram(
    name="scheduler_plugin_execution_duration_seconds",
    stability=ALPHA,
    text="Duration of a plugin call in seconds, sampled in 10 percent of the cycles. One call"
    " of Filter or Score evaluates all nodes.",
    labels=("extension_point", "plugin", "status"),
    buckets=_PLUGIN,
    beta_since="1.37",
)
QUEUEING_HINT_DURATION: Final = histogram(
    name="scheduler_queueing_hint_execution_duration_seconds",
    stability=ALPHA,
    text="Duration of a queueing hint, in seconds.",
    labels=("event", "hint", "plugin"),
    buckets=_PLUGIN,
)
PRE_QUEUEING_HINT_EVALUATIONS: Final = counter(
    name="scheduler_pre_queueing_hint_evaluations_total",
    stability=ALPHA,
    text="Number of events for which a plugin said which waiting pods they may help: all_pods or"
    " narrowed. Only with the feature gate SchedulerPreQueueingHints.",
    labels=("plugin", "result"),
    since="1.37",
)
QUEUE_INCOMING_PODS: Final = counter(
    name="scheduler_queue_incoming_pods_total",
    stability=STABLE,
    text="Number of pods added to a queue, by event.",
    labels=("event", "queue"),
)
QUEUE_INCOMING_ENTITIES: Final = counter(
    name="scheduler_queue_incoming_entities_total",
    stability=ALPHA,
    text="Number of pods and pod groups added to a queue, by event. Pods of a group do not count.",
    labels=("event", "queue", "type"),
    since="1.37",
)
PERMIT_WAIT_DURATION: Final = histogram(
    name="scheduler_permit_wait_duration_seconds",
    stability=BETA,
    text="Time that pods waited on Permit, in seconds.",
    labels=("result",),
    buckets=_ATTEMPT,
)
CACHE_SIZE: Final = gauge(
    name="scheduler_cache_size",
    stability=ALPHA,
    text="Number of nodes, pods and assumed pods in the cache.",
    labels=("type",),
)
UNSCHEDULABLE_PODS: Final = gauge(
    name="scheduler_unschedulable_pods",
    stability=BETA,
    text="Number of unschedulable pods by plugin that rejected them. A pod counts for each plugin.",
    labels=("plugin", "profile"),
)
PLUGIN_EVALUATION: Final = counter(
    name="scheduler_plugin_evaluation_total",
    stability=BETA,
    text="Number of plugin evaluations. Filter and Score count each node.",
    labels=("extension_point", "plugin", "profile"),
)
BATCH_ATTEMPTS: Final = counter(
    name="scheduler_batch_attempts_total",
    stability=ALPHA,
    text="Number of attempts by use of a hint from the previous pod; berth has no hints.",
    labels=("profile", "result"),
)
BATCH_CACHE_FLUSHED: Final = counter(
    name="scheduler_batch_cache_flushed_total",
    stability=ALPHA,
    text="Number of attempts that found a node without leaving a hint, by reason.",
    labels=("profile", "reason"),
)
BATCH_RESCORE_ATTEMPTS: Final = counter(
    name="scheduler_batch_rescore_attempts_total",
    stability=ALPHA,
    text="Number of attempts to score a node again for a hint. berth has no hints and makes none.",
    labels=("profile",),
    since="1.37",
)
BATCH_RESCORE_DURATION: Final = histogram(
    name="scheduler_batch_rescore_duration_seconds",
    stability=ALPHA,
    text="Duration of scoring a node again for a hint, in seconds.",
    labels=("profile",),
    buckets=exponential(0.00001, 2, 12),
    since="1.37",
)
ASYNC_CALLS: Final = counter(
    name="scheduler_async_api_call_execution_total",
    stability=ALPHA,
    text="Number of bindings and status patches of pods that were written, by result.",
    labels=("call_type", "result"),
)
ASYNC_CALL_DURATION: Final = histogram(
    name="scheduler_async_api_call_execution_duration_seconds",
    stability=ALPHA,
    text="Duration of such a write in seconds, without waiting for its turn.",
    labels=("call_type", "result"),
    buckets=_ATTEMPT,
)
PENDING_ASYNC_CALLS: Final = gauge(
    name="scheduler_pending_async_api_calls",
    stability=ALPHA,
    text="Number of such writes that wait for their turn.",
    labels=("call_type",),
)
PREEMPTION_TASK_DURATION: Final = histogram(
    name="scheduler_preemption_goroutines_duration_seconds",
    stability=ALPHA,
    text="Duration of evicting the victims of a preemption, in seconds.",
    labels=("result",),
    buckets=_LONG,
    hidden_since="1.37",
)
PREEMPTION_TASK_EXECUTIONS: Final = counter(
    name="scheduler_preemption_goroutines_execution_total",
    stability=ALPHA,
    text="Number of preemptions, by result.",
    labels=("result",),
)
RESOURCE_CLAIM_CREATES: Final = counter(
    name="scheduler_resourceclaim_creates_total",
    stability=ALPHA,
    text="Number of claims created for extended resources, by result.",
    labels=("status",),
    until="1.37",
)
SHARED_RESOURCE_CLAIM_CREATES: Final = counter(
    name="dynamic_resource_allocation_resourceclaim_creates_total",
    stability=ALPHA,
    text="Number of claims created for extended resources, by result, whether a request asks for"
    " administrative access, and the kind of the owner.",
    labels=("status", "admin_access", "owner_api_group", "owner_api_kind"),
    since="1.37",
)
DEVICE_WAITS: Final = counter(
    name="scheduler_dra_bindingconditions_allocations_total",
    stability=ALPHA,
    text="Number of waits for the binding conditions of devices, by result.",
    labels=("profile", "driver", "status"),
)
DEVICE_WAIT_DURATION: Final = histogram(
    name="scheduler_dra_bindingconditions_wait_duration_seconds",
    stability=ALPHA,
    text="Time that PreBind waited for the binding conditions of devices, in seconds.",
    labels=("profile", "driver", "status"),
    buckets=exponential(0.1, 2, 14),
)
VOLUME_STAGE_ERRORS: Final = counter(
    name="scheduler_volume_scheduling_stage_error_total",
    stability=ALPHA,
    text="Number of volume errors by stage: predicate in Filter, assume in Reserve, bind in"
    " PreBind.",
    labels=("operation",),
)

# From the libraries that all Kubernetes components share.

LEADER: Final = gauge(
    name="leader_election_master_status",
    stability=ALPHA,
    text="1 while this process is the leader, by name of the Lease.",
    labels=("name",),
)
LEADER_SLOW_PATH: Final = counter(
    name="leader_election_slowpath_total",
    stability=ALPHA,
    text="Number of renewals that had to read the Lease first, by name of the Lease.",
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
    text="Number of requests to the API server by method and status; <error> without a response.",
    labels=("code", "host", "method"),
)
REQUEST_DURATION: Final = histogram(
    name="rest_client_request_duration_seconds",
    stability=ALPHA,
    text="Duration of requests to the API server, in seconds.",
    labels=("host", "verb"),
    buckets=_REQUEST_SECONDS,
)
RATE_LIMITER_DURATION: Final = histogram(
    name="rest_client_rate_limiter_duration_seconds",
    stability=ALPHA,
    text="Time that requests waited for the client's rate limit, in seconds.",
    labels=("host", "verb"),
    buckets=_REQUEST_SECONDS,
)
REQUEST_SIZE: Final = histogram(
    name="rest_client_request_size_bytes",
    stability=ALPHA,
    text="Size of request bodies to the API server, in bytes.",
    labels=("host", "verb"),
    buckets=_REQUEST_BYTES,
)
RESPONSE_SIZE: Final = histogram(
    name="rest_client_response_size_bytes",
    stability=ALPHA,
    text="Size of response bodies from the API server, in bytes.",
    labels=("host", "verb"),
    buckets=_REQUEST_BYTES,
)
BUILD_INFO: Final = gauge(
    name="kubernetes_build_info",
    stability=BETA,
    text="Always 1. The labels describe the compatible kube-scheduler and this berth.",
    labels=(
        "build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version",
        "major", "minor", "platform",
    ),
)  # fmt: skip
VERSION_INFO: Final = gauge(
    name="version_info",
    stability=ALPHA,
    text="Always 1. The emulated release, and the oldest compatible one.",
    labels=("binary", "component", "emulation", "min_compat"),
)
FEATURE_ENABLED: Final = gauge(
    name="kubernetes_feature_enabled",
    stability=BETA,
    text="1 for feature gates that are enabled.",
    labels=("name", "stage"),
)
REGISTERED_METRICS: Final = counter(
    name="registered_metrics_total",
    stability=BETA,
    text="Number of registered metrics, by stability.",
    labels=("deprecated_version", "stability_level"),
)

_INFORMER: Final = ("name", "group", "version", "resource")
INFORMER_QUEUED: Final = gauge(
    name="informer_queued_items",
    stability=ALPHA,
    text="Number of objects of a list that the scheduler has not taken in yet, by kind.",
    labels=_INFORMER,
    since="1.37",
)
INFORMER_PROCESSING: Final = histogram(
    name="informer_processing_latency_seconds",
    stability=ALPHA,
    text="Duration of processing one event of a watch or a list in seconds, by kind.",
    labels=_INFORMER,
    buckets=PROCESSING_SECONDS,
    since="1.37",
)
INFORMER_VERSION: Final = gauge(
    name="informer_store_resource_version",
    stability=ALPHA,
    text="The last 15 digits of the resource version that the scheduler has come to, by kind.",
    labels=_INFORMER,
    since="1.37",
)
