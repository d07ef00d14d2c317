"""examples/node-groups: all of its pods get nodes, and no group grows beyond its maximum."""

from collections import Counter

from berth.cluster.kinds.builtin import RESOURCES
from berth.kube import manifests
from berth.tools.autoscaler.node_groups import GROUP_LABEL, read
from tests.docs.pages import ROOT
from tests.tools.autoscaler.live import World, run

EXAMPLE = ROOT / "examples" / "node-groups"
PATHS = {each.kind: f"{each.path}/namespaces/default/{each.plural}" for each in RESOURCES}


def test_the_workload_gets_its_nodes() -> None:
    found = read([EXAMPLE / "groups.yaml"])

    async def scenario(world: World) -> Counter[str]:
        for manifest in manifests.read(EXAMPLE / "workload.yaml"):
            await world.ask("POST", PATHS[manifest["kind"]], manifest)
        await world.until_running(15)
        nodes = await world.items("/api/v1/nodes")
        return Counter(node["metadata"]["labels"][GROUP_LABEL] for node in nodes.values())

    sizes = run(scenario, *found.groups, options=found.options)

    assert sizes["gpu"] == 2
    assert sizes["general"] >= 1
    assert all(sizes[group.name] <= group.max_size for group in found.groups)
