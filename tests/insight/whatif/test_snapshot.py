"""Snapshots as files: what is written is read back, and decides the same."""

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from berth.insight.offline.scenario import read
from berth.insight.whatif.snapshot import BATCH, Snapshot, SnapshotError, decode, load
from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.meta import KubeStruct
from berth.scheduler.framework.exports import exported
from berth.scheduler.framework.listers import KINDS
from tests.builders import disruption_budget, namespace, node, pod, selector, taint, to_json
from tests.insight.whatif.asking import TIME, reread, snapshot

RECORDED = Path(__file__).parents[2] / "conformance" / "recorded"


def recorded_objects() -> Iterator[KubeStruct]:
    """Yield objects of every recording, as they are read."""
    for path in sorted(RECORDED.glob("*.jsonl.gz")):
        with gzip.open(path) as lines:
            first = list(islice(lines, 3))
        for line in first:
            for raw in json.loads(line)["scenario"].get("objects", ()):
                if raw["kind"] in KINDS:
                    yield read(raw, KINDS[raw["kind"]].type)


def test_what_recordings_have_is_read_back() -> None:
    objects = (exported(KINDS[type(obj).__name__], obj) for obj in recorded_objects())
    taken = snapshot(*objects)
    assert reread(taken) == taken
    assert {"Node", "Pod", "PersistentVolume", "ResourceSlice"} <= taken.objects.keys()


def test_configuration_and_time_are_read_back() -> None:
    taken = snapshot(node("n"), config={"kind": "KubeSchedulerConfiguration", "profiles": []})
    assert reread(taken) == taken


def test_what_is_written_for_others_is_left_out() -> None:
    claim = ResourceClaim
    assert reread(snapshot(claim(raw=b"{}"))) == snapshot(claim())


def test_it_comes_in_pieces_of_so_many_objects() -> None:
    pieces = list(snapshot(*(pod(f"p{i}") for i in range(2 * BATCH + 1))).encode())
    assert len(pieces) == len(["head", "full", "full", "one", "end"])


@pytest.mark.parametrize("name", ["snapshot.json", "snapshot.json.gz"])
def test_a_file_may_be_compressed(name: str, tmp_path: Path) -> None:
    data = b"".join(snapshot(node("n")).encode())
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert load(path) == snapshot(node("n"))


def as_list(kind: str, *items: dict[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": items}).encode()


def test_what_kubectl_prints_is_read() -> None:
    things = (node("n", taints=[taint("gpu")]), pod("p"), disruption_budget(selects=selector()))
    written = [json.loads(to_json(thing)) for thing in things]
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    found = decode(as_list("List", event, *written), source="kubectl")
    assert found == Snapshot(objects=snapshot(*things).objects)


def test_a_list_of_one_kind_is_read() -> None:
    items = [json.loads(to_json(namespace(name))) for name in "ab"]
    for item in items:
        del item["kind"], item["apiVersion"]
    found = decode(as_list("NamespaceList", *items), source="api")
    assert found == Snapshot(objects={"Namespace": [namespace("a"), namespace("b")]})


def test_go_writes_null_for_an_empty_list() -> None:
    typed = {"apiVersion": "v1", "kind": "PodList", "items": None}
    assert decode(as_list("List", typed), source="api").objects == {"Pod": []}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"{", "x: no snapshot: Input data was truncated", id="no JSON"),
        pytest.param(b"\x1f\x8b\x08", "x: no snapshot: ", id="a broken gzip file"),
        pytest.param(
            b'{"apiVersion": "v1", "kind": "Pod"}',
            "x: a berth/v1 Snapshot or a List is needed, got apiVersion 'v1', kind 'Pod'",
            id="another object",
        ),
        pytest.param(
            b'{"apiVersion": "berth/v2", "kind": "Snapshot"}',
            "x: a berth/v1 Snapshot or a List is needed, got apiVersion 'berth/v2',"
            " kind 'Snapshot'",
            id="another version",
        ),
        pytest.param(
            as_list("List", {"kind": "NodeList", "items": [{"spec": {"taints": 1}}]}),
            "x: items[0], Node: Expected `array`, got `int` - at `$[0].spec.taints`",
            id="a field of the wrong type",
        ),
        pytest.param(
            as_list("List", {"kind": "Node", "status": {"allocatable": {"cpu": "1x"}}}),
            "x: items[0], Node: allocatable[cpu]: quantity '1x'",
            id="a nonsense quantity",
        ),
    ],
)
def test_what_is_wrong_is_named(data: bytes, says: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        decode(data, source="x")
    assert says in str(caught.value)


def test_a_small_file_that_stands_for_a_large_one_is_refused() -> None:
    says = "bytes stand for more than 33554432: it is packed more than 100 times"
    with pytest.raises(SnapshotError, match=says):
        decode(gzip.compress(bytes(40 << 20)), source="x")


def test_pods_that_cannot_be_told_apart_are_refused() -> None:
    twins = snapshot(node("n"), *(pod(name, node="n", uid="u") for name in "ab"))
    with pytest.raises(SnapshotError, match="pod default/b was already added"):
        twins.scenario()


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SnapshotError, match="/nonexistent/file: No such file"):
        load(Path("/nonexistent/file"))


def test_the_time_is_kept() -> None:
    assert json.loads(b"".join(snapshot().encode())) == {
        "apiVersion": "berth/v1",
        "kind": "Snapshot",
        "metadata": {"time": TIME},
        "items": [],
    }
