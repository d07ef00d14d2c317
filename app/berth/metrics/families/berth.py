"""The families that kube-scheduler does not have."""

from typing import Final

from berth.metrics.family import Stability, counter, exponential, gauge, histogram

ALPHA = Stability.ALPHA

LOOP_LAG: Final = histogram(
    name="berth_event_loop_lag_seconds",
    stability=ALPHA,
    text="Seconds that a timer of the event loop fired too late; measured every second.",
    buckets=exponential(0.001, 2, 14),
)
LANE_DEPTH: Final = gauge(
    name="berth_write_lane_depth",
    stability=ALPHA,
    text="API writes that wait for their turn.",
    labels=("lane",),
)
LANE_IN_FLIGHT: Final = gauge(
    name="berth_write_lane_in_flight",
    stability=ALPHA,
    text="API writes that are being made.",
    labels=("lane",),
)
LANE_WRITES: Final = counter(
    name="berth_write_lane_writes_total",
    stability=ALPHA,
    text="API writes by ending: done, failed, dropped for want of room, superseded by a newer one"
    " for the same pod.",
    labels=("lane", "result"),
)
LANE_WAIT: Final = counter(
    name="berth_write_lane_wait_seconds_total",
    stability=ALPHA,
    text="Seconds that API writes waited for their turn, added up.",
    labels=("lane",),
)
LANE_LONGEST_WAIT: Final = gauge(
    name="berth_write_lane_longest_wait_seconds",
    stability=ALPHA,
    text="The longest that any API write had to wait since the start.",
    labels=("lane",),
)
WATCHED_OBJECTS: Final = gauge(
    name="berth_watched_objects",
    stability=ALPHA,
    text="Objects that are known from the API server, by path.",
    labels=("path",),
)
LISTS: Final = counter(
    name="berth_lists_total",
    stability=ALPHA,
    text="How often all objects were read anew; once is enough while watches last.",
    labels=("path",),
)
MALFORMED_OBJECTS: Final = counter(
    name="berth_malformed_objects_total",
    stability=ALPHA,
    text="How often an object could not be read as a whole when it was heard of.",
    labels=("path",),
)
UNREADABLE_OBJECTS: Final = gauge(
    name="berth_unreadable_objects",
    stability=ALPHA,
    text="Objects that cannot be read as a whole; of those that count, parts are left out.",
    labels=("path", "counts"),
)
HANDLER_FAILURES: Final = counter(
    name="berth_event_handler_failures_total",
    stability=ALPHA,
    text="Changes that the scheduler failed to take in.",
    labels=("path",),
)
SURPLUS_VICTIMS: Final = counter(
    name="berth_preemption_surplus_victims_total",
    stability=ALPHA,
    text="Pods that were evicted for a preemption that was given up, because others of its victims"
    " could not be evicted or the preemptor did not wait any more.",
)
CACHE_DRIFT: Final = gauge(
    name="berth_cache_drift_objects",
    stability=ALPHA,
    text="Nodes and pods that the cache had otherwise than they are watched, when last compared;"
    " every five minutes.",
)
OLDEST_PENDING: Final = gauge(
    name="berth_oldest_pending_seconds",
    stability=ALPHA,
    text="How long the oldest pod of each queue has been waiting since it could first be tried;"
    " gated ones since they were put there.",
    labels=("queue",),
)
REJECTING_ATTEMPTS: Final = counter(
    name="berth_rejected_attempts_total",
    stability=ALPHA,
    text="Attempts that failed, by each plugin that had a part in it.",
    labels=("plugin", "profile"),
)
REJECTED_NODES: Final = counter(
    name="berth_rejected_nodes_total",
    stability=ALPHA,
    text="Nodes that were out of the question for a pod, by the first plugin that said so.",
    labels=("plugin", "profile"),
)
PLUGIN_ERRORS: Final = counter(
    name="berth_plugin_errors_total",
    stability=ALPHA,
    text="How often plugins raised, or gave an answer that made no sense.",
    labels=("plugin", "extension_point", "profile"),
)
PLUGIN_SECONDS: Final = counter(
    name="berth_plugin_seconds_total",
    stability=ALPHA,
    text="Seconds that plugins by others took, of every call, added up.",
    labels=("plugin", "extension_point", "profile"),
)
EXTENDER_CALLS: Final = histogram(
    name="berth_extender_request_duration_seconds",
    stability=ALPHA,
    text="How long calls to extenders take, by ending: success, failure, not_sent while one that"
    " fails again and again is left alone.",
    labels=("extender", "verb", "outcome"),
    buckets=exponential(0.001, 2, 14),
)
EXTENDER_BREAKERS: Final = gauge(
    name="berth_extender_breaker_state",
    stability=ALPHA,
    text="Whether calls to an extender go through: 0 yes, 1 one that decides, 2 no.",
    labels=("extender",),
)
EXTENDER_SERVER_CALLS: Final = histogram(
    name="berth_extender_server_duration_seconds",
    stability=ALPHA,
    text="Seconds that calls took from their first byte to the answer, by HTTP status.",
    labels=("verb", "profile", "code"),
    buckets=exponential(0.0005, 2, 15),
)
EXTENDER_SERVER_NODES_ASKED: Final = counter(
    name="berth_extender_server_nodes_asked_total",
    stability=ALPHA,
    text="Nodes that calls were about.",
    labels=("verb", "profile"),
)
EXTENDER_SERVER_NODES_PASSED: Final = counter(
    name="berth_extender_server_nodes_passed_total",
    stability=ALPHA,
    text="Nodes that were left in answers.",
    labels=("verb", "profile"),
)
EXTENDER_SERVER_ERRORS: Final = counter(
    name="berth_extender_server_errors_total",
    stability=ALPHA,
    text="Calls that were answered with what went wrong.",
    labels=("verb", "profile"),
)
CONFIG_GENERATION: Final = gauge(
    name="berth_config_generation",
    stability=ALPHA,
    text="How many configurations have been in force, the present one included.",
)
CONFIG_LOADED_AT: Final = gauge(
    name="berth_config_last_reload_success_timestamp_seconds",
    stability=ALPHA,
    text="When the configuration in force was loaded, in seconds since 1970.",
)
CONFIG_RELOADS: Final = counter(
    name="berth_config_reloads_total",
    stability=ALPHA,
    text="How often the configuration was read anew: success; or failure, which keeps the old one.",
    labels=("result",),
)
LOOP_STUCK: Final = gauge(
    name="berth_event_loop_stuck_seconds",
    stability=ALPHA,
    text="Seconds for which the event loop has not turned; 0 while it does. Told by a thread of"
    " its own.",
)
LOOP_STALLS: Final = counter(
    name="berth_event_loop_stalls_total",
    stability=ALPHA,
    text="How often the event loop was found stuck for five seconds.",
)
HTTP_CONNECTIONS: Final = gauge(
    name="berth_http_connections",
    stability=ALPHA,
    text="Connections of clients that are open, by port.",
    labels=("port",),
)
HTTP_DROPPED: Final = counter(
    name="berth_http_connections_dropped_total",
    stability=ALPHA,
    text="Connections that were not served: displaced while they waited for their client, to make"
    " room; refused because all others had work; handshake, which failed or took too long;"
    " not_accepted, for want of file descriptors.",
    labels=("port", "reason"),
)
