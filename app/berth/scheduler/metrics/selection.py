"""The selection of families and label values: --disabled-metrics, --allow-metric-labels."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric, Sample

from berth.kube import documents
from berth.runtime.release import LATEST, EffectiveVersion
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.metrics.process import declared

UNEXPECTED: Final = "unexpected"
"""What a label value becomes that is not in the list of those allowed."""

AllowedValues = Mapping[tuple[str, str], frozenset[str]]
"""Family and label to the values that are kept."""


class Selection(CollectorRegistry):
    """A registry that leaves out some families, and merges label values that are not allowed.

    Families are as the release has them that is emulated (1.37 spec N5).
    """

    def __init__(
        self,
        *,
        version: EffectiveVersion = LATEST,
        with_hidden: bool = False,
        disabled: Iterable[str] = (),
        allowed: AllowedValues | None = None,
    ) -> None:
        """*with_hidden*: families that *version* has deprecated are shown, too."""
        super().__init__()
        families = {family.name: family for family in declared()}
        shown = {
            name: family.in_version(version)
            for name, family in families.items()
            if family.is_shown(version, with_hidden=with_hidden)
        }
        self._disabled = frozenset(disabled) | (families.keys() - shown.keys())
        self._help = {
            name: family.help
            for name, family in shown.items()
            if family.help != families[name].help
        }
        self._allowed = allowed or {}
        self._restricted = frozenset(family for family, _ in self._allowed)

    @classmethod
    def by_flags(
        cls,
        *,
        version: EffectiveVersion = LATEST,
        with_hidden: bool = False,
        disabled: Iterable[str],
        allow_labels: Iterable[str],
        manifest: bytes | None,
    ) -> Self:
        """Make the selection that the flags describe; *manifest* holds more of *allow_labels*.

        Raises ConfigError, which names the flag.
        """
        return cls(
            version=version,
            with_hidden=with_hidden,
            disabled=disabled,
            allowed={**_of_manifest(manifest), **_of_flag(allow_labels)},
        )

    def collect(self) -> Iterator[Metric]:
        for metric in super().collect():
            name = _full_name(metric)
            if name in self._disabled:
                continue
            metric.documentation = self._help.get(name, metric.documentation)
            yield self._merged(name, metric) if name in self._restricted else metric

    def _merged(self, family: str, metric: Metric) -> Metric:
        """Return *metric* with the samples added up that differ in values not allowed only."""
        sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for sample in metric.samples:
            labels = tuple(
                (label, self._value(family, label, value)) for label, value in sample.labels.items()
            )
            key = sample.name, labels
            sums[key] = sums.get(key, 0) + sample.value
        merged = Metric(metric.name, metric.documentation, metric.type)
        merged.samples = [Sample(name, dict(labels), n) for (name, labels), n in sums.items()]
        return merged

    def _value(self, family: str, label: str, value: str) -> str:
        allowed = self._allowed.get((family, label))
        return value if allowed is None or value in allowed else UNEXPECTED


def _full_name(metric: Metric) -> str:
    """Return the name as Prometheus shows it; prometheus-client keeps that of counters short."""
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def _of_flag(items: Iterable[str]) -> dict[tuple[str, str], frozenset[str]]:
    flag, labels = "--allow-metric-labels", {}
    for item in items:
        key, equals, values = item.partition("=")
        if not equals:
            raise ConfigError(flag, [f"{item!r} must be like metric,label=value,value"])
        labels[_key(key, flag)] = frozenset(values.strip("'\"").split(","))
    return labels


def _of_manifest(text: bytes | None) -> dict[tuple[str, str], frozenset[str]]:
    flag = "--allow-metric-labels-manifest"
    if text is None:
        return {}
    try:
        content = documents.load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError(flag, [f"not YAML: {error}"]) from error
    if not isinstance(content, dict):
        raise ConfigError(flag, ["must be a mapping of metric,label to values"])
    return {_key(str(k), flag): frozenset(str(v).split(",")) for k, v in content.items()}


def _key(text: str, flag: str) -> tuple[str, str]:
    metric, comma, label = text.partition(",")
    if not (metric and comma and label) or "," in label:
        raise ConfigError(flag, [f"{text!r} must be a metric and a label: metric,label"])
    return metric, label
