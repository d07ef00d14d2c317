"""Names on the command line of ``berth bench``, apart from what measures them."""

from typing import Final

WORKLOADS: Final = {
    "plain": "plain, all requests equal",
    "zone-spread": "required zone spread",
    "hostname-anti-affinity": "required anti-affinity on hostname",
    "zone-affinity": "required zone affinity",
}
"""Names on the command line of :mod:`berth.tools.bench.workloads`. The pods are replicas."""

CROWDED: Final = "crowded"
CROWDED_DIFFERENT: Final = "crowded-different"
"""Workloads of ``berth bench throughput``, too: see :mod:`berth.tools.bench.crowded`."""

CLUSTER_PODS: Final = 50_000
CLUSTER_WATCHERS: Final = 100
