"""The sample workload of ``berth up --sample``, and the GPU nodes that it needs."""

from collections.abc import Iterable
from functools import partial
from importlib.resources import files
from typing import Any, Final

import msgspec

from berth.cluster.loading import Loader
from berth.cluster.sources import Gathered
from berth.kube import manifests
from berth.kube.client.api import Api

GPU_NODES: Final = 3


async def load_sample(loader: Loader, client: Api, *, nodes: Iterable[str]) -> None:
    """Create the sample workload, and keep the last few of *nodes* for its GPU pods."""
    for name in list(nodes)[-GPU_NODES:]:
        await _dedicate(client, name)
    text = files("berth.tools.up.samples").joinpath("workload.yaml").read_text(encoding="utf-8")
    sample = Gathered()
    sample.add("sample", partial(manifests.parse, text, source="sample"))
    await loader.load(sample)


async def _dedicate(client: Api, node: str) -> None:
    """Label and taint a node, as ``kubectl label`` and ``kubectl taint`` would."""
    patch: dict[str, Any] = {
        "metadata": {"labels": {"pool": "gpu"}},
        "spec": {"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]},
    }
    await client.request(
        "PATCH",
        f"/api/v1/nodes/{node}",
        body=msgspec.json.encode(patch),
        content_type="application/merge-patch+json",
    )
