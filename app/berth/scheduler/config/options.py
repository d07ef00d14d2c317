# ruff: noqa: RUF009 - _flag is dataclasses.field in short, and Duration is frozen
"""The flags of kube-scheduler 1.36 (spec §7.2): one field per flag, spelled with underscores.

They are grouped as in kube-scheduler, so that each part of the process gets the options that are
for it. A field's type and default are the flag's; what a flag does is up to its reader.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, Final, Self, TypeVar

from berth.runtime.duration import Duration
from berth.runtime.release import RELEASE, RELEASES
from berth.scheduler.config import feature_gates

T = TypeVar("T")

HELP, DEPRECATED, WHOLE, CHOICES = "help", "deprecated", "whole", "choices"
"""Keys of a field's metadata. ``WHOLE``: a list whose items may contain commas."""


def _flag(
    default: T,
    text: str,
    *,
    deprecated: bool = False,
    whole: bool = False,
    choices: tuple[str, ...] | None = None,
) -> T:
    metadata = {HELP: text, DEPRECATED: deprecated, WHOLE: whole, CHOICES: choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecatedOptions:
    """Flags that kube-scheduler deprecates; most count only without a configuration file."""

    kubeconfig: str = _flag(
        "",
        "The kubeconfig of the API server. Without it, berth uses the in-cluster configuration.",
        deprecated=True,
    )
    profiling: bool = _flag(default=True, text="Serve /debug/pprof.", deprecated=True)
    contention_profiling: bool = _flag(
        default=True, text="Profile lock contention.", deprecated=True
    )
    kube_api_content_type: str = _flag(
        "application/vnd.kubernetes.protobuf", "Content type of API requests.", deprecated=True
    )
    kube_api_qps: float = _flag(50.0, "API requests per second.", deprecated=True)
    kube_api_burst: int = _flag(
        100, "Number of API requests that may exceed the rate in a burst.", deprecated=True
    )
    pod_max_in_unschedulable_pods_duration: Duration = _flag(
        Duration.of(300),
        "How long a pod stays unschedulable before another attempt without an event.",
        deprecated=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionOptions:
    """What overrides ``leaderElection`` of the configuration."""

    leader_elect: bool = _flag(default=True, text="Schedule only while holding the Lease.")
    leader_elect_lease_duration: Duration = _flag(
        Duration.of(15), "How long a Lease that is not renewed stays valid."
    )
    leader_elect_renew_deadline: Duration = _flag(
        Duration.of(10), "How long the leader tries to renew before it gives up."
    )
    leader_elect_retry_period: Duration = _flag(
        Duration.of(2), "Time between attempts to acquire or renew the Lease."
    )
    leader_elect_resource_lock: str = _flag("leases", "Type of the lock; only leases.")
    leader_elect_resource_name: str = _flag("kube-scheduler", "Name of the Lease.")
    leader_elect_resource_namespace: str = _flag("kube-system", "Namespace of the Lease.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureServingOptions:
    """Where HTTPS is served, and with which certificates."""

    secure_port: int = _flag(10259, "Serve HTTPS on this port; 0 disables serving.")
    bind_address: str = _flag("0.0.0.0", "Serve on this address.")
    cert_dir: str = _flag("", "The folder for a generated certificate.")
    tls_cert_file: str = _flag("", "The serving certificate. Without it, one is generated.")
    tls_private_key_file: str = _flag("", "The private key of the certificate.")
    tls_cipher_suites: tuple[str, ...] = _flag((), "Cipher suites to accept.")
    tls_min_version: str = _flag("", "The minimum TLS version.")
    tls_curve_preferences: tuple[str, ...] = _flag((), "Key exchange curves to accept.")
    tls_sni_cert_key: tuple[str, ...] = _flag(
        (), "certificate,key[:names]: an additional certificate for these names.", whole=True
    )
    http2_max_streams_per_connection: int = _flag(
        0, "Limit of HTTP/2 streams per connection; 0 is the default of the server."
    )
    disable_http2_serving: bool = _flag(default=False, text="Serve HTTP/1.1 only.")
    permit_port_sharing: bool = _flag(default=False, text="Bind with SO_REUSEPORT.")
    permit_address_sharing: bool = _flag(default=False, text="Bind with SO_REUSEADDR.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatingAuthenticationOptions:
    """Who a client is: TokenReview, client certificates, request headers."""

    authentication_kubeconfig: str = _flag("", "The kubeconfig of the server that reviews tokens.")
    authentication_token_webhook_cache_ttl: Duration = _flag(
        Duration.of(10), "How long to cache token reviews."
    )
    authentication_skip_lookup: bool = _flag(
        default=False, text="Do not look up the client authorities in the cluster."
    )
    authentication_tolerate_lookup_failure: bool = _flag(
        default=True,
        text="Serve even if that lookup fails; then no client certificate is accepted.",
    )
    client_ca_file: str = _flag("", "Certificate authority of clients.")
    requestheader_client_ca_file: str = _flag("", "Certificate authority of proxies.")
    requestheader_allowed_names: tuple[str, ...] = _flag(
        (), "Accepted names of proxies; empty accepts any."
    )
    requestheader_username_headers: tuple[str, ...] = _flag(
        ("x-remote-user",), "Headers with the user name."
    )
    requestheader_group_headers: tuple[str, ...] = _flag(
        ("x-remote-group",), "Headers with the groups."
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = _flag(
        ("x-remote-extra-",), "Prefixes of headers with further user attributes."
    )
    requestheader_uid_headers: tuple[str, ...] = _flag((), "Headers with the UID of the user.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatingAuthorizationOptions:
    """What a client may do: SubjectAccessReview, and the paths open to everyone."""

    authorization_kubeconfig: str = _flag("", "The kubeconfig of the server that reviews access.")
    authorization_webhook_cache_authorized_ttl: Duration = _flag(
        Duration.of(10), "How long to cache allowed requests."
    )
    authorization_webhook_cache_unauthorized_ttl: Duration = _flag(
        Duration.of(10), "How long to cache denied requests."
    )
    authorization_always_allow_paths: tuple[str, ...] = _flag(
        ("/healthz", "/readyz", "/livez"), "Public paths."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOptions:
    """Feature gates, and which release to behave as."""

    feature_gates: Mapping[str, bool] = field(
        default_factory=dict,
        metadata={
            HELP: "Feature gates as Gate=true or Gate=false, optionally with the prefix kube:."
            f" Options are: {feature_gates.options()}."
        },
    )
    emulated_version: tuple[str, ...] = _flag(
        (),
        f"The release of Kubernetes to be like: {' or '.join(RELEASES)}, optionally with the prefix"
        f" kube=; {RELEASE} if neither the flag nor the configuration says.",
    )
    min_compatibility_version: tuple[str, ...] = _flag(
        (), "The oldest release to be compatible with; by default the one before the emulated."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Which metrics are shown."""

    show_hidden_metrics_for_version: str = _flag(
        "", "Show metrics that were hidden after this release."
    )
    disabled_metrics: tuple[str, ...] = _flag((), "Metrics to disable.")
    allow_metric_labels: tuple[str, ...] = _flag(
        (), "metric,label=values: the label values to keep; others become unexpected.", whole=True
    )
    allow_metric_labels_manifest: str = _flag("", "A file with allowed label values.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingOptions:
    """What is logged, and how."""

    logging_format: str = _flag("text", "Log format.", choices=("text", "json"))
    log_flush_frequency: Duration = _flag(Duration.of(5), "Maximum time between log flushes.")
    v: int = _flag(0, "Log level.")
    vmodule: tuple[str, ...] = _flag((), "pattern=N: log levels of modules.")
    log_text_split_stream: bool = _flag(
        default=False, text="Text format: write only errors to stderr."
    )
    log_text_info_buffer_size: str = _flag("0", "Text format: buffer size in bytes.")
    log_json_split_stream: bool = _flag(
        default=False, text="JSON format: write only errors to stderr."
    )
    log_json_info_buffer_size: str = _flag("0", "JSON format: buffer size in bytes.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The values of all flags, and which of them were given."""

    explicit: frozenset[str] = frozenset()
    """The fields whose flags were on the command line."""

    config: str = _flag("", "Read the configuration from this file.")
    write_config_to: str = _flag("", "Write the effective configuration to this file and exit.")
    master: str = _flag("", "The address of the API server; takes precedence over the kubeconfig.")
    deprecated: DeprecatedOptions = DeprecatedOptions()
    leader_election: LeaderElectionOptions = LeaderElectionOptions()
    secure_serving: SecureServingOptions = SecureServingOptions()
    authentication: DelegatingAuthenticationOptions = DelegatingAuthenticationOptions()
    authorization: DelegatingAuthorizationOptions = DelegatingAuthorizationOptions()
    versions: VersionOptions = VersionOptions()
    metrics: MetricsOptions = MetricsOptions()
    logs: LoggingOptions = LoggingOptions()
    version: str = _flag("false", "Print the version and exit; raw prints all details.")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the options of the flags *given*, by field name; the others at their defaults."""
        groups = {name: group(**_within(group, given)) for name, group in GROUPS.items()}
        return cls(explicit=frozenset(given), **_within(cls, given), **groups)

    def values(self) -> dict[str, Any]:
        """Return the values of all flags, by field name."""
        return {
            flag.name: getattr(options, flag.name)
            for options in (self, *(getattr(self, name) for name in GROUPS))
            for flag in _flags(type(options))
        }


GROUPS: Final[Mapping[str, type[Any]]] = {
    each.name: type(each.default) for each in fields(Options) if is_dataclass(each.default)
}
"""The groups of flags by the field of :class:`Options` that holds them."""


def flag_fields() -> list[Field[Any]]:
    """Return the fields of all flags, in the order of :class:`Options` and its groups."""
    found = list[Field[Any]]()
    for each in fields(Options):
        found += _flags(GROUPS[each.name]) if each.name in GROUPS else [each]
    return [flag for flag in found if HELP in flag.metadata]


def _flags(kind: type[Any]) -> list[Field[Any]]:
    return [each for each in fields(kind) if HELP in each.metadata]


def _within(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {flag.name: given[flag.name] for flag in _flags(kind) if flag.name in given}
