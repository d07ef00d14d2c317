"""KubeSchedulerConfiguration v1 as types; a field's default is the API's (spec §7.1, §9.1).

Fields are in the order in which kube-scheduler writes them. A configuration that is ready for use
comes from :mod:`berth.scheduler.config.load`, which also fills in what depends on other fields.
"""

import base64
import binascii
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_serializer,
)
from pydantic.alias_generators import to_camel

from berth.runtime.duration import Duration

GROUP = "kubescheduler.config.k8s.io"
API_VERSION: Literal["kubescheduler.config.k8s.io/v1"] = "kubescheduler.config.k8s.io/v1"
KIND: Literal["KubeSchedulerConfiguration"] = "KubeSchedulerConfiguration"

Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]


def _from_base64(text: object) -> object:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else text
    except binascii.Error as error:
        raise ValueError(f"must be base64: {error}") from error


Base64 = Annotated[
    bytes,
    BeforeValidator(_from_base64),
    PlainSerializer(lambda data: base64.b64encode(data).decode("ascii"), when_used="json"),
]


_json_name = cache(to_camel)


class ExtensionPoint(StrEnum):
    """Where plugins take part; the value is the name of the field in :class:`Plugins`."""

    PRE_ENQUEUE = "pre_enqueue"
    QUEUE_SORT = "queue_sort"
    PRE_FILTER = "pre_filter"
    FILTER = "filter"
    POST_FILTER = "post_filter"
    PRE_SCORE = "pre_score"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "pre_bind"
    BIND = "bind"
    POST_BIND = "post_bind"
    PLACEMENT_GENERATE = "placement_generate"
    PLACEMENT_SCORE = "placement_score"
    POD_GROUP_POST_FILTER = "pod_group_post_filter"

    @property
    def field(self) -> str:
        """The name in a configuration file: ``preFilter``."""
        return _json_name(self.value)


class ConfigModel(BaseModel):
    """One object of the configuration: unknown fields are errors, values are not coerced."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )

    OMITTED_WHEN_EMPTY: ClassVar[frozenset[str]] = frozenset()
    """Fields that are not written when they are empty, false or zero; by their JSON names."""

    @model_serializer(mode="wrap")
    def _omit_empty(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        return {k: v for k, v in written.items() if v or k not in self.OMITTED_WHEN_EMPTY}


class ZeroIsUnset(ConfigModel):
    """An object in which an empty or zero value has the default of its field."""

    @field_validator("*")
    @classmethod
    def _zero_is_unset(cls, value: Any, info: ValidationInfo) -> Any:
        if value or isinstance(value, bool) or info.field_name is None:
            return value
        return cls.model_fields[info.field_name].get_default(call_default_factory=True)


class LeaderElection(ZeroIsUnset):
    """How replicas agree on which of them schedules."""

    leader_elect: bool = True
    """Schedule only while holding the Lease."""
    lease_duration: Duration = Duration.of(15)
    """How long a Lease that is not renewed stays valid."""
    renew_deadline: Duration = Duration.of(10)
    """How long the leader tries to renew before it gives up."""
    retry_period: Duration = Duration.of(2)
    """Time between attempts to acquire or renew the Lease."""
    resource_lock: str = "leases"
    """Only ``leases``."""
    resource_name: str = "kube-scheduler"
    """Name of the Lease."""
    resource_namespace: str = "kube-system"
    """Namespace of the Lease."""


class ClientConnection(ZeroIsUnset):
    """How to reach the API server, and how fast; ``qps`` is requests per second."""

    kubeconfig: str = ""
    """File with the address and credentials of the API server."""
    accept_content_types: str = ""
    """No effect: berth uses JSON."""
    content_type: str = "application/vnd.kubernetes.protobuf"
    """No effect: berth uses JSON."""
    qps: Annotated[float, Field(allow_inf_nan=False)] = 50.0
    """Requests per second."""
    burst: Int32 = 100
    """Number of requests that may exceed the rate in a burst."""

    @property
    def limits_rate(self) -> bool:
        """Whether somebody has set a rate limit, rather than that there is one by default."""
        return not self.model_fields_set.isdisjoint({"qps", "burst"})

    @field_serializer("qps")
    def _whole(self, qps: float) -> int | float:
        return int(qps) if qps.is_integer() else qps


class PluginEntry(ConfigModel):
    """A plugin in a list; a weight of 0 is none."""

    name: str
    """Name of the plugin."""
    weight: Int32 = 0
    """Weight of its scores; 0 is the default weight."""


class PluginSet(ConfigModel):
    """What a profile adds to and removes from one extension point; ``*`` disables all."""

    OMITTED_WHEN_EMPTY = frozenset({"enabled", "disabled"})

    enabled: tuple[PluginEntry, ...] = ()
    """Plugins to enable, in this order, after those that are enabled by default."""
    disabled: tuple[PluginEntry, ...] = ()
    """Plugins to disable; ``*`` disables all."""


class Plugins(ConfigModel):
    """The plugin sets of a profile; ``multi_point`` stands for every point a plugin implements."""

    pre_enqueue: PluginSet = PluginSet()
    """Before a pod becomes active."""
    queue_sort: PluginSet = PluginSet()
    """The order of the active queue."""
    pre_filter: PluginSet = PluginSet()
    """Once in a cycle, before Filter."""
    filter: PluginSet = PluginSet()
    """Nodes that cannot run the pod."""
    post_filter: PluginSet = PluginSet()
    """If no node is feasible."""
    pre_score: PluginSet = PluginSet()
    """Once, before Score."""
    score: PluginSet = PluginSet()
    """The ranking of feasible nodes."""
    reserve: PluginSet = PluginSet()
    """After a node is chosen."""
    permit: PluginSet = PluginSet()
    """Approve, wait or reject."""
    pre_bind: PluginSet = PluginSet()
    """Before Bind."""
    bind: PluginSet = PluginSet()
    """The binding."""
    post_bind: PluginSet = PluginSet()
    """After Bind."""
    multi_point: PluginSet = PluginSet()
    """All extension points that a plugin implements."""
    placement_generate: PluginSet = PluginSet()
    """Which parts of the cluster a group may be placed in; at most one plugin."""
    placement_score: PluginSet = PluginSet()
    """Which of them is best."""
    pod_group_post_filter: PluginSet | None = Field(
        default=None, exclude_if=lambda plugin_set: plugin_set is None
    )
    """If a group does not fit; since 1.37. None: the release does not have it."""

    def at(self, point: ExtensionPoint) -> PluginSet:
        """Return the set of one extension point."""
        plugin_set: PluginSet = getattr(self, point.value) or PluginSet()
        return plugin_set

    def sets(self) -> dict[str, PluginSet]:
        """Return all sets by their JSON names, multiPoint among them."""
        found = {_json_name(name): getattr(self, name) for name in type(self).model_fields}
        return {name: plugin_set for name, plugin_set in found.items() if plugin_set is not None}


class PluginConfig(ConfigModel):
    """The args of one plugin; complete and checked for plugins whose args have a model."""

    OMITTED_WHEN_EMPTY = frozenset({"args"})

    name: str
    """Name of the plugin."""
    args: dict[str, Any] = {}
    """Its arguments; see below."""


class KubeSchedulerProfile(ConfigModel):
    """One scheduler, by the name that pods ask for."""

    OMITTED_WHEN_EMPTY = frozenset({"pluginConfig"})

    scheduler_name: str = ""
    """The name that pods select with ``spec.schedulerName``; of a single profile by default
    ``default-scheduler``."""
    percentage_of_nodes_to_score: Int32 | None = Field(
        default=None, exclude_if=lambda percentage: percentage is None
    )
    """Overrides the value for all profiles."""
    plugins: Plugins = Plugins()
    """Plugins to enable and disable, by extension point."""
    plugin_config: tuple[PluginConfig, ...] = ()
    """Arguments of plugins."""

    def args(self, plugin: str) -> dict[str, Any]:
        """Return the args of *plugin*; empty when it has none."""
        return next((c.args for c in self.plugin_config if c.name == plugin), {})


class ExtenderTLSConfig(ConfigModel):
    """TLS of an extender; ``*_data`` wins over the file of the same thing."""

    OMITTED_WHEN_EMPTY = frozenset(
        {
            "insecure",
            "serverName",
            "certFile",
            "keyFile",
            "caFile",
            "certData",
            "keyData",
            "caData",
        }
    )

    insecure: bool = False
    """Do not verify the certificate of the extender."""
    server_name: str = ""
    """Expected name in the certificate, if it is not the host of the URL."""
    cert_file: str = ""
    """Client certificate."""
    key_file: str = ""
    """Key of the client certificate."""
    ca_file: str = ""
    """Certificate authority of the extender."""
    cert_data: Base64 = b""
    """The same as ``certFile``, inline."""
    key_data: Base64 = b""
    """The same as ``keyFile``, inline."""
    ca_data: Base64 = b""
    """The same as ``caFile``, inline."""


class ExtenderManagedResource(ConfigModel):
    """A resource that an extender looks after."""

    OMITTED_WHEN_EMPTY = frozenset({"ignoredByScheduler"})

    name: str
    """Name of the extended resource."""
    ignored_by_scheduler: bool = False
    """NodeResourcesFit ignores this resource."""


class Extender(ZeroIsUnset):
    """An HTTP service that is asked too (spec §9.1); an empty verb is a thing it does not do."""

    OMITTED_WHEN_EMPTY = frozenset(
        {
            "filterVerb",
            "preemptVerb",
            "prioritizeVerb",
            "weight",
            "bindVerb",
            "enableHTTPS",
            "tlsConfig",
            "nodeCacheCapable",
            "managedResources",
            "ignorable",
        }
    )

    url_prefix: str = ""
    """URL of the extender, to which ``/VERB`` is added."""
    filter_verb: str = ""
    """Verb for filtering nodes."""
    preempt_verb: str = ""
    """Verb for choosing victims."""
    prioritize_verb: str = ""
    """Verb for scoring nodes."""
    weight: Int64 = 0
    """Factor of its scores."""
    bind_verb: str = ""
    """Verb for binding pods; at most one extender may have it."""
    enable_https: bool = Field(
        default=False, validation_alias="enableHTTPS", serialization_alias="enableHTTPS"
    )
    """Use HTTPS."""
    tls_config: ExtenderTLSConfig | None = None
    """TLS settings."""
    http_timeout: Duration = Duration.of(5)
    """Timeout of a call."""
    node_cache_capable: bool = False
    """Send names of nodes instead of node objects."""
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    """If set, only pods that request one of these resources are sent."""
    ignorable: bool = False
    """Continue without the extender if it fails."""


class KubeSchedulerConfiguration(ConfigModel):
    """The whole configuration; periods whose name says so are in seconds."""

    OMITTED_WHEN_EMPTY = frozenset(
        {
            "extenders",
            "delayCacheUntilActive",
            "featureGates",
            "emulatedVersion",
            "minCompatibilityVersion",
        }
    )

    kind: Literal["KubeSchedulerConfiguration"] = KIND
    api_version: Literal["kubescheduler.config.k8s.io/v1"] = API_VERSION
    parallelism: Int32 = 16
    """No effect: berth evaluates all nodes at once."""
    leader_election: LeaderElection = LeaderElection()
    """Leader election."""
    client_connection: ClientConnection = ClientConnection()
    """Connection to the API server."""
    enable_profiling: bool = True
    """Serve /debug/pprof."""
    enable_contention_profiling: bool = Field(
        default_factory=lambda fields: fields["enable_profiling"]
    )
    """No effect: one event loop has no locks."""
    percentage_of_nodes_to_score: Int32 = 0
    """Share of feasible nodes after which the search stops; 0 evaluates all nodes."""
    pod_initial_backoff_seconds: Int64 = 1
    """Backoff after the first failed attempt."""
    pod_max_backoff_seconds: Int64 = 10
    """Maximum backoff."""
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    """Profiles, each with its own scheduler name."""
    extenders: tuple[Extender, ...] = ()
    """Extenders to call."""
    delay_cache_until_active: bool = False
    """Start watching only after becoming leader."""
    feature_gates: dict[str, bool] = Field(default_factory=dict)
    """Feature gates as in --feature-gates, which wins. kube-scheduler's file has no such field."""
    emulated_version: str = ""
    """The release to be like as in --emulated-version, which wins: 1.36 or 1.37. kube-scheduler's
    file has no such field."""
    min_compatibility_version: str = ""
    """The oldest release to be compatible with as in --min-compatibility-version, which wins;
    by default the one before the emulated. kube-scheduler's file has no such field."""
