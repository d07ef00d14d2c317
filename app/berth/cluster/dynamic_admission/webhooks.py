"""The webhooks that are configured at present."""

from collections.abc import Sequence
from typing import Final

import msgspec

from berth.cluster.dynamic_admission.conditions import NamedExpression
from berth.cluster.dynamic_admission.matching import CONFIGURATION_GROUP, Rule
from berth.cluster.reading import readable
from berth.cluster.storage.stored import Stored
from berth.cluster.strategies.selectors import LabelSelector
from berth.kube.objects.meta import KubeStruct

MUTATING: Final = f"mutatingwebhookconfigurations.{CONFIGURATION_GROUP}"
VALIDATING: Final = f"validatingwebhookconfigurations.{CONFIGURATION_GROUP}"


class ServiceReference(KubeStruct, frozen=True):
    namespace: str = ""
    name: str = ""
    path: str | None = None
    port: int | None = None


class ClientConfig(KubeStruct, frozen=True):
    """Where a webhook is; ``ca_bundle`` is PEM in base64."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str | None = None


class Webhook(KubeStruct, frozen=True):
    """One of a configuration; fields as there, defaulted and valid."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()
    rules: list[Rule] | None = None
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = None
    timeout_seconds: int | None = None
    admission_review_versions: list[str] | None = None
    reinvocation_policy: str | None = None
    match_conditions: list[NamedExpression] | None = None

    @property
    def fails_closed(self) -> bool:
        return self.failure_policy != "Ignore"

    @property
    def timeout(self) -> int:
        """Seconds."""
        return self.timeout_seconds or 10


class _Configuration(KubeStruct, frozen=True):
    webhooks: list[Webhook] | None = None


def read_webhooks(configurations: Sequence[Stored]) -> list[Webhook]:
    """Return the webhooks of *configurations*, in their order."""
    return [
        hook
        for _, configuration in readable(configurations, _read, "webhook configurations")
        for hook in configuration.webhooks or ()
    ]


_read = msgspec.json.Decoder(_Configuration).decode
