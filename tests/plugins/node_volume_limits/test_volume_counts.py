"""NodeVolumeLimits keeps counts; they say what counting all volumes again would say."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import AWSElasticBlockStore, Pod, Volume
from berth.kube.objects.storage import CSISource, PersistentVolume, PersistentVolumeClaim
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.node_volume_limits.attachments import Attachments
from berth_plugins.node_volume_limits.plugin import NodeVolumeLimits
from berth_plugins.node_volume_limits.volume_counts import RowsByKey
from berth_plugins.node_volume_limits.volume_names import Used, VolumeNames
from tests.builders import node, pod
from tests.volume_builders import add, attachment, claim, csi_node, listers, storage_class, volume

CSI, EBS = "csi.example.com", "ebs.csi.aws.com"
NODES = 3
CLAIMS = 6
CLASSES = ("soon", "later")


def persistent_volume(number: int, kind: int) -> PersistentVolume:
    """Make a volume of one of two drivers; some have one handle."""
    name = f"pv{number}"
    match kind % 4:
        case 0:
            source = AWSElasticBlockStore(f"vol-{number}")
            return volume(name, aws_elastic_block_store=source)
        case 1:
            return volume(name, csi=CSISource(EBS, f"vol-{number}"))
        case 2:
            return volume(name, csi=CSISource(CSI, "the same"))
        case _:
            return volume(name, csi=CSISource(CSI, name))


def some_claim(number: int, kind: int) -> PersistentVolumeClaim:
    """Make a claim that is bound, or that waits for a volume of a class."""
    if kind % 3:
        return claim(f"c{number}", bound_to=f"pv{(number + kind // 3) % CLAIMS}")
    return claim(f"c{number}", storage_class=CLASSES[kind // 3 % len(CLASSES)])


def some_pod(name: str, number: int, kind: int) -> Pod:
    """Make a pod with one or two claims, some also with a disk of their own."""
    disk = Volume("disk", aws_elastic_block_store=AWSElasticBlockStore(f"vol-{number}"))
    claims = {f"c{number}", f"c{kind % CLAIMS}"}
    return pod(name, claims=sorted(claims), volumes=[disk] if kind % 5 == 0 else [])


def counted_again(a_pod: Pod, nodes: NodeTable, known: Listers) -> set[str]:
    """Return the names of the nodes that *a_pod* does not fit, by the rule (spec §5.16)."""
    names, attachments, full = VolumeNames(known, Random(0)), Attachments(known), set()
    wanted = names.wanted_by(a_pod)
    assert not isinstance(wanted, Status)
    for name, row in nodes.row_of.items():
        of_node = known.csi_nodes.get("", name)
        limits = {} if of_node is None else of_node.limits
        used = names.used_by(nodes.pods[row].values()).volumes
        attached, new = used | attachments.to(name), wanted - used
        for driver in {each.driver for each in new} & limits.keys():
            there = sum(each.driver == driver for each in attached)
            added = sum(each.driver == driver for each in new)
            if there + added > limits[driver]:
                full.add(name)
    return full


def rejected(tested: NodeVolumeLimits, a_pod: Pod, nodes: NodeTable) -> set[str]:
    state, info = CycleState(nodes.exists.copy()), PodInfo(a_pod)
    verdict = tested.filter(state, info, nodes)
    full = {name for name, row in nodes.row_of.items() if verdict.status_of(row) is not None}
    explained = {
        name
        for name, row in nodes.row_of.items()
        if any(True for _ in tested.explain(state, info, nodes, row))
    }
    assert full == explained
    return full


class World:
    """A cluster in which anything may happen to volumes, and the tables that stand for it."""

    def __init__(self) -> None:
        self.known = listers(*(storage_class(name, provisioner=CSI) for name in CLASSES))
        for number in range(CLAIMS):
            add(self.known, persistent_volume(number, 3), some_claim(number, 1))
        self.nodes = NodeTable()
        for number in range(NODES):
            self.nodes.add_node(node(f"n{number}"))
            add(self.known, csi_node(f"n{number}", limits={CSI: 1 + number, EBS: 2}))
        self.copy = self.nodes.detached()
        self.plugin = NodeVolumeLimits(None, Handle(self.nodes, listers=self.known))

    def let(self, what: str, where: int, number: int, kind: int) -> None:
        """Let something happen."""
        known, name = self.known, f"n{where}"
        match what:
            case "pod" | "pod of the copy":
                toggle(self.nodes if what == "pod" else self.copy, name, number, kind)
            case "node":
                row = self.nodes.row_of.get(name)
                if row is None:
                    self.nodes.add_node(node(name))
                else:
                    self.nodes.remove_node(row)
            case "copy":
                self.copy = self.nodes.detached()
            case "limits":
                add(known, csi_node(name, limits={CSI: number, EBS: kind % 4}))
            case "attachment":
                there = known.volume_attachments.get("", f"va{number}")
                if there is not None and kind % 2:
                    known.volume_attachments.on_delete(there)
                else:
                    pv, attacher = f"pv{kind % CLAIMS}", EBS if kind % 3 else CSI
                    add(known, attachment(f"va{number}", node=name, volume=pv, attacher=attacher))
            case "claim":
                add(known, some_claim(number, kind))
            case "volume":
                pv_there = known.persistent_volumes.get("", f"pv{number}")
                if pv_there is not None and kind % 5 == 0:
                    known.persistent_volumes.on_delete(pv_there)
                else:
                    add(known, persistent_volume(number, kind))
            case "class":
                provisioner = EBS if kind % 2 else CSI
                add(known, storage_class(CLASSES[number % 2], provisioner=provisioner))

    def check(self, waiting: Pod) -> None:
        """Compare what the plugin says of all tables, and of a part without some pods."""
        part = self.nodes.take(self.nodes.row_of.values())
        for nodes in (self.nodes, self.copy, part):
            assert rejected(self.plugin, waiting, nodes) == self.counted_again(waiting, nodes)
        for row in range(part.size):
            for there in list(part.pods[row].values())[:1]:
                part.remove_pod(row, there)
        assert rejected(self.plugin, waiting, part) == self.counted_again(waiting, part)

    def counted_again(self, waiting: Pod, nodes: NodeTable) -> set[str]:
        return counted_again(waiting, nodes, self.known)


def toggle(nodes: NodeTable, node_name: str, number: int, kind: int) -> None:
    """Take a pod off a node, or put it there."""
    row = nodes.row_of.get(node_name)
    if row is None:
        return
    made = PodInfo(some_pod(f"{node_name}-{number}", number, kind))
    there = nodes.pods[row].get(made.uid)
    if there is None:
        nodes.add_pod(row, made)
    else:
        nodes.remove_pod(row, there)


EVENTS = (
    *("pod", "pod", "pod", "pod of the copy", "copy", "node", "limits"),
    *("attachment", "attachment", "claim", "claim", "volume", "volume", "class"),
)

happenings = st.tuples(
    st.sampled_from(EVENTS),
    st.integers(0, NODES - 1),
    st.integers(0, CLAIMS - 1),
    st.integers(0, 29),
)


@settings(max_examples=40)
@given(happens=st.lists(happenings, min_size=5, max_size=25))
def test_rejects_the_nodes_that_counting_again_rejects(
    happens: list[tuple[str, int, int, int]],
) -> None:
    world = World()
    for what, where, number, kind in happens:
        world.let(what, where, number, kind)
        world.check(some_pod("waiting", kind % CLAIMS, number))


def test_much_that_may_happen_decides_something() -> None:
    """The property above would hold of nodes that are all full, or none, as well."""
    rng, world, found = Random(1), World(), set[int]()
    for _ in range(100):
        what, where = rng.choice(EVENTS), rng.randrange(NODES)
        world.let(what, where, rng.randrange(CLAIMS), rng.randrange(30))
        waiting = some_pod("waiting", rng.randrange(CLAIMS), rng.randrange(CLAIMS))
        found.add(len(rejected(world.plugin, waiting, world.nodes)))
    assert len(found) > 2


def test_looks_only_at_rows_on_which_something_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for number in range(NODES):
        world.let("pod", number, number, number)
    asked: list[str] = []
    used_by = VolumeNames.used_by

    def noted(self: VolumeNames, pods: Sequence[PodInfo]) -> Used:
        asked.extend(each.pod.metadata.name for each in pods)
        return used_by(self, pods)

    monkeypatch.setattr(VolumeNames, "used_by", noted)

    def looked_at() -> Sequence[str]:
        asked.clear()
        state, waiting = CycleState(world.nodes.exists.copy()), some_pod("waiting", 5, 5)
        world.plugin.filter(state, PodInfo(waiting), world.nodes)
        return sorted(asked)

    for number in range(NODES):
        add(world.known, csi_node(f"n{number}", limits={CSI: 1}))
    assert looked_at() == ["n0-0", "n1-1", "n2-2"]
    assert looked_at() == []
    add(world.known, persistent_volume(1, 2))
    assert looked_at() == ["n1-1"]
    add(world.known, attachment("va", node="n2", volume="pv5"))
    assert looked_at() == ["n2-2"]
    add(world.known, persistent_volume(5, 2))
    assert looked_at() == ["n2-2"]
    add(world.known, storage_class("soon", provisioner=EBS))
    assert looked_at() == ["n0-0", "n1-1", "n2-2"]


puts = st.lists(st.tuples(st.integers(0, 3), st.frozensets(st.sampled_from("abcd"))), max_size=12)


@given(puts=puts)
def test_rows_by_key(puts: list[tuple[int, frozenset[str]]]) -> None:
    index: RowsByKey[str] = RowsByKey()
    has: dict[int, frozenset[str]] = {}
    for row, keys in puts:
        index.put(row, set(keys))
        has[row] = keys
    for key in "abcd":
        assert sorted(index.rows(key)) == sorted(row for row, keys in has.items() if key in keys)
