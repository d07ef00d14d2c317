"""``docs/reference/metrics.md``: every metric family that is declared."""

from collections.abc import Iterable

from berth.runtime.metrics import Family, Kind
from berth.scheduler.metrics.process import declared
from docs.generate import markdown

INTRODUCTION = """\
berth serves these on `/metrics` of its HTTPS port (10259). Metrics with kube-scheduler's name have
its type, labels, buckets and stability, so dashboards and alerts keep working;
[Compatibility](../compatibility.md#metrics) lists what differs and what is absent.
`/metrics/slis` and `/metrics/resources` serve the families that kube-scheduler serves there."""
OWN = """\
kube-scheduler has no counterpart for these. They are ALPHA by the Kubernetes definition: a
release may rename or remove them, and the changelog says so."""
HEADER = ("Name", "Type", "Stability", "Labels", "Meaning")


def page() -> str:
    families = sorted(declared(), key=lambda family: family.name)
    own = [family for family in families if family.name.startswith("berth_")]
    return markdown.page(
        "Metrics",
        INTRODUCTION,
        "## kube-scheduler's metrics",
        _table(family for family in families if family not in own),
        "## berth's own metrics",
        OWN,
        _table(own),
        "## Histogram buckets",
        markdown.table(
            ("Name", "Upper bounds"),
            [
                (markdown.code(family.name), ", ".join(family.bounds))
                for family in families
                if family.kind is Kind.HISTOGRAM
            ],
        ),
        source="the metric families of berth.scheduler.metrics",
    )


def _table(families: Iterable[Family]) -> str:
    return markdown.table(
        HEADER,
        [
            (
                markdown.code(family.name),
                str(family.kind),
                str(family.stability or ""),
                ", ".join(map(markdown.code, family.labels)),
                markdown.plain(family.text),
            )
            for family in families
        ],
    )
