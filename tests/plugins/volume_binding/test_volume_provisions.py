"""Where new volumes can be made."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.meta import LabelSelectorRequirement
from berth.kube.objects.storage import CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from berth_plugins.volume_binding.volume_provisions import VolumeProvisions
from tests.builders import HOSTNAME, ZONE, expression, node, selector
from tests.plugins.evaluating import table
from tests.volume_builders import (
    StorageObject,
    claim,
    csi_driver,
    listers,
    storage_capacity,
    storage_class,
)

NODES = [node("n1", zone="a"), node("n2", zone="b", labels={"rack": "r1"})]
DYNAMIC = storage_class("dyn", provisioner="csi.example.com")
WANTED = claim(storage_class="dyn", size="5Gi")

N1 = selector({HOSTNAME: "n1"})


def evaluated(wanted: PersistentVolumeClaim, *objects: StorageObject) -> dict[str, str] | str:
    """Return what is against a new volume, per node where there is anything, or the error."""
    nodes = table(*NODES)
    found = VolumeProvisions(listers(*objects)).check(wanted, nodes)
    if found.error:
        return found.error
    words = {}
    for name, row in nodes.row_of.items():
        if found.impossible is not None and found.impossible[row]:
            words[name] = "impossible"
        elif found.too_small is not None and found.too_small[row]:
            words[name] = "too small"
    return words


@pytest.mark.parametrize(
    ("wanted", "classes", "want"),
    [
        pytest.param(WANTED, [DYNAMIC], {}, id="anywhere"),
        pytest.param(
            claim(storage_class=""), [], 'no class for claim "default/data"', id="without a class"
        ),
        pytest.param(WANTED, [], 'failed to find storage class "dyn"', id="of an unknown class"),
        pytest.param(
            claim(),
            [storage_class()],
            {"n1": "impossible", "n2": "impossible"},
            id="of a class that makes none",
        ),
        pytest.param(
            claim(),
            [storage_class(provisioner="")],
            {"n1": "impossible", "n2": "impossible"},
            id="of a class that says nothing of it",
        ),
    ],
)
def test_by_class(
    wanted: PersistentVolumeClaim, classes: list[StorageClass], want: dict[str, str] | str
) -> None:
    assert evaluated(wanted, *classes) == want


@pytest.mark.parametrize(
    ("topologies", "want"),
    [
        pytest.param([{ZONE: ["a", "c"]}], {"n2": "impossible"}, id="a zone"),
        pytest.param([{ZONE: ["b"]}, {HOSTNAME: ["n1"]}], {}, id="any term will do"),
        pytest.param(
            [{ZONE: ["a", "b"], "rack": ["r1"]}], {"n1": "impossible"}, id="all labels of a term"
        ),
        pytest.param([{}], {"n1": "impossible", "n2": "impossible"}, id="an empty term"),
        pytest.param(
            [{ZONE: []}, {ZONE: ["a"]}],
            {"n2": "impossible"},
            id="a term that cannot be",
        ),
    ],
)
def test_by_allowed_topologies(
    topologies: list[dict[str, list[str]]], want: dict[str, str]
) -> None:
    allowed = storage_class("dyn", provisioner="csi.example.com", topologies=topologies)
    assert evaluated(WANTED, allowed) == want


@pytest.mark.parametrize(
    ("reports", "want"),
    [
        pytest.param([], ["n1", "n2"], id="nobody reports any"),
        pytest.param([storage_capacity(nodes=N1, size="5Gi")], ["n2"], id="just enough on a node"),
        pytest.param([storage_capacity(nodes=N1, size="4Gi")], ["n1", "n2"], id="too little"),
        pytest.param([storage_capacity(nodes=selector(), size="5Gi")], [], id="for all nodes"),
        pytest.param([storage_capacity(size="5Gi")], ["n1", "n2"], id="for no nodes"),
        pytest.param([storage_capacity(nodes=N1)], ["n1", "n2"], id="of unknown size"),
        pytest.param(
            [storage_capacity(nodes=N1, size="9Gi", largest="4Gi")],
            ["n1", "n2"],
            id="enough, but not in one volume",
        ),
        pytest.param(
            [storage_capacity(nodes=N1, size="1Gi", largest="5Gi")],
            ["n2"],
            id="the largest volume counts alone",
        ),
        pytest.param(
            [storage_capacity(nodes=N1, size="5Gi", storage_class="x")],
            ["n1", "n2"],
            id="of another class",
        ),
        pytest.param(
            [
                storage_capacity("c1", nodes=N1, size="1Gi"),
                storage_capacity("c2", nodes=selector({ZONE: "a"}), size="5Gi"),
            ],
            ["n2"],
            id="one report is enough",
        ),
        pytest.param(
            [
                storage_capacity(
                    nodes=selector({ZONE: "b"}, expressions=[expression("rack", "Exists")]),
                    size="5Gi",
                )
            ],
            ["n1"],
            id="for nodes by several labels",
        ),
        pytest.param(
            [
                storage_capacity(
                    nodes=selector(expressions=[LabelSelectorRequirement("rack", "In", ())]),
                    size="5Gi",
                )
            ],
            ["n1", "n2"],
            id="for nodes by a selector that cannot be",
        ),
    ],
)
def test_by_capacity(reports: list[CSIStorageCapacity], want: list[str]) -> None:
    assert evaluated(WANTED, DYNAMIC, csi_driver(), *reports) == dict.fromkeys(want, "too small")


@pytest.mark.parametrize(
    ("wanted", "drivers"),
    [
        pytest.param(WANTED, [], id="the driver is unknown"),
        pytest.param(WANTED, [csi_driver(capacity=False)], id="the driver does not report"),
        pytest.param(claim(storage_class="dyn", size=None), [csi_driver()], id="no size is asked"),
    ],
)
def test_capacity_does_not_matter(
    wanted: PersistentVolumeClaim, drivers: Sequence[StorageObject]
) -> None:
    assert evaluated(wanted, DYNAMIC, *drivers) == {}


def test_reports_come_and_go() -> None:
    known = listers(DYNAMIC, csi_driver())
    provisioning = VolumeProvisions(known)
    nodes = table(*NODES)

    def too_small() -> list[str]:
        mask = provisioning.check(WANTED, nodes).too_small
        assert mask is not None
        return sorted(name for name, row in nodes.row_of.items() if mask[row])

    by_label = storage_capacity("c1", nodes=N1, size="5Gi")
    by_labels = storage_capacity("c2", nodes=selector({ZONE: "b", "rack": "r1"}), size="5Gi")
    for report in (by_label, by_labels):
        known.csi_storage_capacities.on_add(report)
    assert too_small() == []
    shrunk = storage_capacity("c1", nodes=N1, size="1Gi")
    known.csi_storage_capacities.on_update(by_label, shrunk)
    assert too_small() == ["n1"]
    known.csi_storage_capacities.on_delete(by_labels)
    assert too_small() == ["n1", "n2"]
    moved = storage_capacity("c1", nodes=selector({HOSTNAME: "n2"}), size="5Gi")
    known.csi_storage_capacities.on_update(shrunk, moved)
    assert too_small() == ["n1"]
