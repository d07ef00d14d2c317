"""Which volumes are in use where, as pods and nodes come and go."""

from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.pod import (
    AWSElasticBlockStore,
    AzureDisk,
    CinderVolume,
    EphemeralVolumeSource,
    GCEPersistentDisk,
    ISCSIVolume,
    RBDVolume,
    Volume,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.shared.volume_claims import claim_volumes
from berth_plugins.shared.volumes_in_use import Disk, disk_of, volumes_in_use
from tests.builders import claim_volume, node, pod
from tests.plugins.evaluating import table

VOLUMES = [
    Volume("empty"),
    claim_volume("c1"),
    claim_volume("c2"),
    Volume("e", ephemeral=EphemeralVolumeSource()),
    Volume("gce", gce_persistent_disk=GCEPersistentDisk("d")),
    Volume("aws", aws_elastic_block_store=AWSElasticBlockStore("d")),
    Volume("iscsi", iscsi=ISCSIVolume("d")),
    Volume("rbd", rbd=RBDVolume(pool="p", image="d")),
    Volume("azure", azure_disk=AzureDisk("n", "d")),
    Volume("cinder", cinder=CinderVolume("d")),
]
DISKS = [disk for volume in VOLUMES if (disk := disk_of(volume)) is not None]

some_pods = st.lists(
    st.tuples(
        st.sampled_from(["n1", "n2"]),
        st.sampled_from(["a", "b"]),
        st.lists(st.sampled_from(VOLUMES), unique_by=lambda v: v.name, max_size=3),
    ),
    max_size=5,
)


def test_disks_are_told_apart() -> None:
    assert len(set(DISKS)) == len(DISKS) == 6


@given(some_pods, st.data())
def test_what_is_in_use_follows_the_pods(
    placed: list[tuple[str, str, list[Volume]]], data: st.DataObject
) -> None:
    nodes = table(node("n1"), node("n2"))
    for i, (name, ns, volumes) in enumerate(placed):
        nodes.add_pod(nodes.row_of[name], PodInfo(pod(f"p{i}", ns=ns, node=name, volumes=volumes)))
        check(nodes)
    while nodes.row_of:
        name = data.draw(st.sampled_from(sorted(nodes.row_of)))
        row = nodes.row_of[name]
        pods = list(nodes.pods[row].values())
        if pods:
            nodes.remove_pod(row, data.draw(st.sampled_from(pods)))
        else:
            nodes.remove_node(row)
        check(nodes)


def test_a_part_of_a_table_is_on_its_own() -> None:
    nodes = table(node("n1"), pods=[pod("p", node="n1", claims=["c1"])])
    assert volumes_in_use(nodes).is_claim_used("default/c1")
    part = nodes.take([nodes.row_of["n1"]])
    part.remove_pod(0, next(iter(part.pods[0].values())))
    assert not volumes_in_use(part).is_claim_used("default/c1")
    assert volumes_in_use(nodes).is_claim_used("default/c1")


def check(nodes: NodeTable) -> None:
    """Compare with a look at every pod."""
    found = volumes_in_use(nodes)
    named: set[str] = set()
    rows: dict[Disk, set[int]] = {}
    for row, pods in enumerate(nodes.pods):
        on_row: set[str | Disk] = set()
        using = []
        for info in pods.values():
            claims = list(claim_volumes(info.pod))
            disks = [d for v in info.pod.spec.volumes if (d := disk_of(v)) is not None]
            if claims or disks:
                using.append(info)
            on_row |= {f"{info.namespace}/{claim.claim_name}" for claim in claims} | set(disks)
            named |= {f"{info.namespace}/{c.claim_name}" for c in claims if not c.is_ephemeral}
            for disk in disks:
                rows.setdefault(disk, set()).add(row)
        assert list(found.pods(row)) == using
        assert found.counts[row] == len(on_row)
    assert {disk: set(found.rows_with(disk)) for disk in DISKS} == {
        disk: rows.get(disk, set()) for disk in DISKS
    }
    for key in ("a/c1", "a/c2", "b/c1", "b/c2", "a/p0-e"):
        assert found.is_claim_used(key) == (key in named), key
