"""The families that kube-scheduler does not have."""

from typing import Final

from berth.runtime.metrics import Stability, counter, exponential, gauge, histogram

ALPHA = Stability.ALPHA

LOOP_LAG: Final = histogram(
    name="berth_event_loop_lag_seconds",
    stability=ALPHA,
    text="Delay of a timer of the event loop in seconds, measured every second.",
    buckets=exponential(0.001, 2, 14),
)
LANE_DEPTH: Final = gauge(
    name="berth_write_lane_depth",
    stability=ALPHA,
    text="Number of API writes that wait.",
    labels=("lane",),
)
LANE_IN_FLIGHT: Final = gauge(
    name="berth_write_lane_in_flight",
    stability=ALPHA,
    text="Number of API writes in progress.",
    labels=("lane",),
)
LANE_WRITES: Final = counter(
    name="berth_write_lane_writes_total",
    stability=ALPHA,
    text="Number of API writes by result: done, failed, dropped because the queue was full, or"
    " superseded by a newer write for the same pod.",
    labels=("lane", "result"),
)
LANE_WAIT: Final = counter(
    name="berth_write_lane_wait_seconds_total",
    stability=ALPHA,
    text="Total time that API writes waited, in seconds.",
    labels=("lane",),
)
LANE_LONGEST_WAIT: Final = gauge(
    name="berth_write_lane_longest_wait_seconds",
    stability=ALPHA,
    text="Longest time that an API write has waited since the start, in seconds.",
    labels=("lane",),
)
WATCHED_OBJECTS: Final = gauge(
    name="berth_watched_objects",
    stability=ALPHA,
    text="Number of watched objects, by path.",
    labels=("path",),
)
LISTS: Final = counter(
    name="berth_lists_total",
    stability=ALPHA,
    text="Number of lists, by path; one per path while the watch lasts.",
    labels=("path",),
)
MALFORMED_OBJECTS: Final = counter(
    name="berth_malformed_objects_total",
    stability=ALPHA,
    text="Number of objects received that could only be read in part.",
    labels=("path",),
)
UNREADABLE_OBJECTS: Final = gauge(
    name="berth_unreadable_objects",
    stability=ALPHA,
    text="Number of objects that can only be read in part, and whether they count.",
    labels=("path", "counts"),
)
HANDLER_FAILURES: Final = counter(
    name="berth_event_handler_failures_total",
    stability=ALPHA,
    text="Number of watch events that the scheduler failed to process.",
    labels=("path",),
)
SURPLUS_VICTIMS: Final = counter(
    name="berth_preemption_surplus_victims_total",
    stability=ALPHA,
    text="Number of pods evicted for a preemption that did not complete, because other victims"
    " could not be evicted or the preemptor was gone.",
)
CACHE_DRIFT: Final = gauge(
    name="berth_cache_drift_objects",
    stability=ALPHA,
    text="Number of nodes and pods that differed between cache and watch in the last"
    " comparison, every five minutes.",
)
OLDEST_PENDING: Final = gauge(
    name="berth_oldest_pending_seconds",
    stability=ALPHA,
    text="Time that the oldest pod of each queue has been pending, in seconds. For gated pods,"
    " since they were gated.",
    labels=("queue",),
)
REJECTING_ATTEMPTS: Final = counter(
    name="berth_rejected_attempts_total",
    stability=ALPHA,
    text="Number of failed attempts, by each plugin that rejected nodes.",
    labels=("plugin", "profile"),
)
REJECTED_NODES: Final = counter(
    name="berth_rejected_nodes_total",
    stability=ALPHA,
    text="Number of rejected nodes, by the first plugin that rejected each.",
    labels=("plugin", "profile"),
)
PLUGIN_ERRORS: Final = counter(
    name="berth_plugin_errors_total",
    stability=ALPHA,
    text="Number of exceptions and invalid answers of plugins.",
    labels=("plugin", "extension_point", "profile"),
)
PLUGIN_SECONDS: Final = counter(
    name="berth_plugin_seconds_total",
    stability=ALPHA,
    text="Total time spent in out-of-tree plugins, in seconds.",
    labels=("plugin", "extension_point", "profile"),
)
EXTENDER_CALLS: Final = histogram(
    name="berth_extender_request_duration_seconds",
    stability=ALPHA,
    text="Duration of calls to extenders in seconds, by outcome: success, failure, or not_sent"
    " while the circuit breaker is open.",
    labels=("extender", "verb", "outcome"),
    buckets=exponential(0.001, 2, 14),
)
EXTENDER_BREAKERS: Final = gauge(
    name="berth_extender_breaker_state",
    stability=ALPHA,
    text="State of the circuit breaker of an extender: 0 closed, 1 half-open, 2 open.",
    labels=("extender",),
)
EXTENDER_SERVER_CALLS: Final = histogram(
    name="berth_extender_server_duration_seconds",
    stability=ALPHA,
    text="Duration of requests to the extender port in seconds, by HTTP status.",
    labels=("verb", "profile", "code"),
    buckets=exponential(0.0005, 2, 15),
)
EXTENDER_SERVER_NODES_ASKED: Final = counter(
    name="berth_extender_server_nodes_asked_total",
    stability=ALPHA,
    text="Number of nodes in requests to the extender port.",
    labels=("verb", "profile"),
)
EXTENDER_SERVER_NODES_PASSED: Final = counter(
    name="berth_extender_server_nodes_passed_total",
    stability=ALPHA,
    text="Number of nodes in responses of the extender port.",
    labels=("verb", "profile"),
)
EXTENDER_SERVER_ERRORS: Final = counter(
    name="berth_extender_server_errors_total",
    stability=ALPHA,
    text="Number of requests to the extender port that failed.",
    labels=("verb", "profile"),
)
CONFIG_GENERATION: Final = gauge(
    name="berth_config_generation",
    stability=ALPHA,
    text="Number of configurations that have been in force, including the current one.",
)
CONFIG_LOADED_AT: Final = gauge(
    name="berth_config_last_reload_success_timestamp_seconds",
    stability=ALPHA,
    text="Unix time at which the configuration in force was loaded.",
)
CONFIG_RELOADS: Final = counter(
    name="berth_config_reloads_total",
    stability=ALPHA,
    text="Number of configuration reloads by result. After a failure the old configuration"
    " stays in force.",
    labels=("result",),
)
FOREIGN_BINDS: Final = counter(
    name="berth_foreign_binds_total",
    stability=ALPHA,
    text="Number of pods of the profiles of this scheduler that somebody else bound while it led."
    " A second active instance may give the same room away.",
)
LOOP_STUCK: Final = gauge(
    name="berth_event_loop_stuck_seconds",
    stability=ALPHA,
    text="Time for which the event loop has been stuck, in seconds; 0 while it runs. Reported"
    " by a separate thread.",
)
LOOP_STALLS: Final = counter(
    name="berth_event_loop_stalls_total",
    stability=ALPHA,
    text="Number of times that the event loop was stuck for five seconds.",
)
HTTP_CONNECTIONS: Final = gauge(
    name="berth_http_connections",
    stability=ALPHA,
    text="Number of open client connections, by port.",
    labels=("port",),
)
HTTP_DROPPED: Final = counter(
    name="berth_http_connections_dropped_total",
    stability=ALPHA,
    text="Number of connections that were not served: displaced while waiting for their client;"
    " refused because all others were busy; handshake failed or took too long;"
    " not_accepted without file descriptors.",
    labels=("port", "reason"),
)
SHADOW_COMPARISONS: Final = counter(
    name="berth_shadow_comparisons_total",
    stability=ALPHA,
    text="Number of pods for which a shadow compared its decision with that of the other scheduler,"
    " by result, the plugin that made the difference, and the order of bindings in which it holds:"
    " watch, queue or moved.",
    labels=("result", "profile", "plugin", "order"),
)
SHADOW_SKIPPED: Final = counter(
    name="berth_shadow_skipped_total",
    stability=ALPHA,
    text="Number of placements that a shadow did not compare, by reason.",
    labels=("reason",),
)
SHADOW_BEHIND: Final = gauge(
    name="berth_shadow_changes_behind",
    stability=ALPHA,
    text="Number of changes of the cluster that a shadow has received and not looked at yet.",
)
RECORDED_LINES: Final = counter(
    name="berth_recording_lines_total",
    stability=ALPHA,
    text="Number of lines for the recording by result: written, or dropped because the recording"
    " has ended.",
    labels=("result",),
)
RECORDED_BYTES: Final = counter(
    name="berth_recording_bytes_total",
    stability=ALPHA,
    text="Number of bytes written to the recording, compressed.",
)
SHARD_SLOTS: Final = gauge(
    name="berth_shard_slots",
    stability=ALPHA,
    text="Number of slots whose nodes and pods this replica decides about.",
)
SHARD_MOVES: Final = counter(
    name="berth_shard_slot_moves_total",
    stability=ALPHA,
    text="Number of slots that this replica has taken or given.",
)
SHARD_EXPELLED: Final = counter(
    name="berth_shard_expelled_members_total",
    stability=ALPHA,
    text="Number of replicas that this one has expelled because their Lease had expired.",
)
SHARD_OFFERS: Final = counter(
    name="berth_shard_offers_total",
    stability=ALPHA,
    text="Number of pods that this replica offered to the holder of another node, by result:"
    " accepted, or refused and tried again.",
    labels=("result",),
)
