"""What nodes draw and cost at a time, as the Lab says, and what that comes to."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects import quantity
from berth.scheduler.framework.node_table import NodeTable
from berth.tools.lab.types import PowerCurve, Price

POWER: Final = "power"
"""Watts."""
COST_PER_HOUR: Final = "cost per hour"
WATT_SECONDS_PER_KWH: Final = 3_600_000
SECONDS_PER_HOUR: Final = 3600

Floats = NDArray[np.float64]


class Meters:
    """Reads the power and the cost of all nodes."""

    def __init__(self, power: Sequence[PowerCurve] = (), price: Price | None = None) -> None:
        self._power, self._price = tuple(power), price

    def rates(self, nodes: NodeTable) -> dict[str, float]:
        """Return the watts of all nodes, and the cost of an hour of those that have pods."""
        rates = {}
        has_pods = nodes.pod_count > 0
        if self._power:
            rates[POWER] = float(
                sum(
                    self._watts(curve, nodes, has_pods, units).sum()
                    for curve, units in zip(self._power, self._units(nodes), strict=True)
                )
            )
        if self._price is not None:
            prices = nodes.kept((Meters, self._price.label), lambda: self._prices(nodes))
            rates[COST_PER_HOUR] = float(prices[has_pods].sum())
        return rates

    def totals(self, used: Mapping[str, float]) -> dict[str, float]:
        """Return kWh and cost; *used* is what the rates of a run come to, times seconds."""
        totals = {}
        if self._power:
            totals["energy"] = used.get(POWER, 0.0) / WATT_SECONDS_PER_KWH
        if self._price is not None:
            totals["cost"] = used.get(COST_PER_HOUR, 0.0) / SECONDS_PER_HOUR
        return totals

    @staticmethod
    def _watts(
        curve: PowerCurve, nodes: NodeTable, has_pods: NDArray[np.bool_], units: Floats
    ) -> Floats:
        rows = nodes.resource_rows(curve.resource)
        if rows is None:
            return np.zeros(nodes.size)
        allocatable, requested = rows
        shares = 100 * requested / np.maximum(allocatable, 1)
        watts = np.interp(shares, [share for share, _ in curve.watts], [w for _, w in curve.watts])
        if curve.empty is not None:
            watts[~has_pods] = curve.empty
        watts *= units
        return watts

    def _units(self, nodes: NodeTable) -> Sequence[Floats]:
        """Return by curve how often it counts for each row."""
        return nodes.kept(
            (Meters, POWER), lambda: [self._units_of(curve, nodes) for curve in self._power]
        )

    @staticmethod
    def _units_of(curve: PowerCurve, nodes: NodeTable) -> Floats:
        wanted = curve.node_labels.items()
        matches = [node is not None and wanted <= node.labels.items() for node in nodes.nodes]
        units = np.array(matches, float)
        rows = nodes.resource_rows(curve.resource)
        if curve.each and rows is not None:
            nanos = quantity.parse(curve.each)
            is_cpu = curve.resource == "cpu"
            units *= rows[0] / (quantity.milli_value(nanos) if is_cpu else quantity.value(nanos))
        return units

    def _prices(self, nodes: NodeTable) -> Floats:
        assert self._price is not None
        label, per_hour = self._price.label, self._price.per_hour
        return np.array(
            [per_hour.get(node.labels.get(label, ""), 0.0) if node else 0.0 for node in nodes.nodes]
        )
