"""In-tree volumes in the words of the drivers that took them over."""

from typing import Any, Final

import pytest

from berth.kube.objects.pod import (
    AWSElasticBlockStore,
    AzureDisk,
    CinderVolume,
    CSIVolume,
    GCEPersistentDisk,
    NodeSelectorTerm,
    Volume,
)
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeSpec, PortworxVolume
from berth_plugins.shared.csi_translation import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    is_migrated_on,
    kind_of,
    translated,
    volume_handle,
)
from tests.builders import requirement, term
from tests.volume_builders import csi_node, volume

EBS: Final[dict[str, Any]] = {"aws_elastic_block_store": AWSElasticBlockStore("vol-1")}
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        pytest.param(Volume(**EBS), "ebs.csi.aws.com", "vol-1", id="AWS, in a pod"),
        pytest.param(
            PersistentVolumeSpec(aws_elastic_block_store=AWSElasticBlockStore("aws:///vol-1")),
            "ebs.csi.aws.com",
            "vol-1",
            id="AWS, as a URL",
        ),
        pytest.param(
            PersistentVolumeSpec(aws_elastic_block_store=AWSElasticBlockStore("aws://us-1a/vol-1")),
            "ebs.csi.aws.com",
            "vol-1",
            id="AWS, as a URL with its zone",
        ),
        pytest.param(
            Volume(gce_persistent_disk=GCEPersistentDisk("d")),
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="GCE",
        ),
        pytest.param(
            Volume(azure_disk=AzureDisk("d", "/uri/d")), "disk.csi.azure.com", "/uri/d", id="Azure"
        ),
        pytest.param(
            Volume(cinder=CinderVolume("c-1")), "cinder.csi.openstack.org", "c-1", id="Cinder"
        ),
        pytest.param(
            PersistentVolumeSpec(portworx_volume=PortworxVolume("p-1")),
            "pxd.portworx.com",
            "p-1",
            id="Portworx",
        ),
    ],
)
def test_volume_handle(source: Volume | PersistentVolumeSpec, driver: str, handle: str) -> None:
    kind = kind_of(source)
    assert kind is not None
    assert (kind.driver, volume_handle(source)) == (driver, handle)


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        pytest.param({ZONE: "us-east1-b"}, "zones/us-east1-b", id="one zone"),
        pytest.param({ZONE: "a", BETA_ZONE: "b"}, "zones/b", id="the beta label comes first"),
        pytest.param(
            {ZONE: "us-east1-b__us-east1-c"}, "regions/us-east1", id="two zones of one region"
        ),
    ],
)
def test_a_gce_disk_is_called_by_its_zones(labels: dict[str, str], place: str) -> None:
    source = PersistentVolumeSpec(gce_persistent_disk=GCEPersistentDisk("d"))
    assert volume_handle(source, labels) == f"projects/UNSPECIFIED/{place}/disks/d"


@pytest.mark.parametrize(
    ("source", "labels", "error"),
    [
        pytest.param(
            PersistentVolumeSpec(aws_elastic_block_store=AWSElasticBlockStore("aws://zone/disk")),
            {},
            "awsElasticBlockStore.volumeID 'aws://zone/disk'",
            id="an AWS URL without a volume id",
        ),
        pytest.param(
            PersistentVolumeSpec(gce_persistent_disk=GCEPersistentDisk("d")),
            {ZONE: "us-east1-b__us-west1-c"},
            "not of one region",
            id="GCE zones of two regions",
        ),
        pytest.param(
            PersistentVolumeSpec(gce_persistent_disk=GCEPersistentDisk("d")),
            {ZONE: "us-east1-b__somewhere"},
            "not of one region",
            id="a GCE zone without a region",
        ),
        pytest.param(PersistentVolumeSpec(), {}, "not a volume of an in-tree kind", id="others"),
    ],
)
def test_what_cannot_be_translated(
    source: PersistentVolumeSpec, labels: dict[str, str], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        volume_handle(source, labels)


def test_csi_volumes_are_of_no_in_tree_kind() -> None:
    assert kind_of(Volume(csi=CSIVolume("csi.example.com"))) is None
    assert kind_of(volume().spec) is None


def test_is_migrated_on() -> None:
    node = csi_node(migrated="kubernetes.io/aws-ebs,kubernetes.io/gce-pd")
    assert is_migrated_on(node, "kubernetes.io/gce-pd")
    assert not is_migrated_on(node, "kubernetes.io/cinder")
    assert not is_migrated_on(csi_node(), "kubernetes.io/gce-pd")
    assert not is_migrated_on(None, "kubernetes.io/gce-pd")


def within(key: str, *values: str) -> NodeSelectorTerm:
    return term(requirement(key, "In", *values))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(volume(**EBS), None, id="nothing is known of where it is"),
        pytest.param(
            volume(reach=[within(ZONE, "a")], **EBS), [within(EBS_ZONE, "a")], id="a zone"
        ),
        pytest.param(
            volume(reach=[within("rack", "r"), within(ZONE, "a")], labels={ZONE: "b"}, **EBS),
            [within("rack", "r"), within(EBS_ZONE, "a")],
            id="its affinity comes before its labels",
        ),
        pytest.param(
            volume(labels={ZONE: "b__a"}, **EBS), [within(EBS_ZONE, "a", "b")], id="zone labels"
        ),
        pytest.param(
            volume(reach=[within("rack", "r")], labels={BETA_ZONE: "a"}, **EBS),
            [term(requirement("rack", "In", "r"), requirement(EBS_ZONE, "In", "a"))],
            id="a zone label is added to what is there",
        ),
        pytest.param(
            volume(
                reach=[
                    term(requirement(BETA_ZONE, "In", "a"), requirement(BETA_REGION, "In", "r"))
                ],
                **EBS,
            ),
            [term(requirement(EBS_ZONE, "In", "a"), requirement(REGION, "In", "r"))],
            id="beta labels",
        ),
        pytest.param(
            volume(reach=[within(ZONE, "a")], azure_disk=AzureDisk("d", "u")),
            [within(ZONE, "a")],
            id="a driver that knows zones by the common label",
        ),
    ],
)
def test_translated(before: PersistentVolume, after: list[NodeSelectorTerm] | None) -> None:
    affinity = translated(before).spec.node_affinity
    if after is None:
        assert affinity is None
        return
    assert affinity is not None
    assert affinity.required is not None
    assert list(affinity.required.node_selector_terms) == after
