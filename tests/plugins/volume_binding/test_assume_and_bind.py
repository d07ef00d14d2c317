"""VolumeBinding: what is assumed for a pod, written for it, and waited for."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.volume_binding.binder import BIND_CONFLICT
from berth_plugins.volume_binding.plugin import POD_VOLUMES, VolumeBinding, VolumeBindingArgs
from berth_plugins.volume_binding.pod_volumes import bound_to, provisioned_for
from tests.builders import HOSTNAME, node, pod
from tests.harness import PluginCluster
from tests.plugins.evaluating import table
from tests.volume_builders import (
    StorageObject,
    add,
    claim,
    listers,
    reference,
    storage_class,
    volume,
)

LOCAL = storage_class("local")
DYNAMIC = storage_class("dyn", provisioner="csi.example.com")


class Attempt:
    """One pod on its way to node n1."""

    def __init__(self, plugin: VolumeBinding, a_pod: Pod, nodes: NodeTable) -> None:
        self.plugin = plugin
        self.pod = PodInfo(a_pod)
        self.state = CycleState(nodes.exists.copy())
        refused = plugin.pre_filter(self.state, self.pod, nodes)
        assert refused in (None, SKIP), refused
        self.fits = refused is SKIP or not plugin.filter(self.state, self.pod, nodes)

    def reserve(self) -> Status | None:
        return self.plugin.reserve(self.state, self.pod, "n1")

    def unreserve(self) -> None:
        self.plugin.unreserve(self.state, self.pod, "n1")

    def pre_flight(self) -> Status | None:
        return self.plugin.pre_bind_pre_flight(self.state, self.pod, "n1")


class Bench:
    """The plugin on a cluster of one node that does what a test says."""

    def __init__(self, *objects: StorageObject, timeout: int = 600) -> None:
        self.nodes = table(node("n1"))
        self.clock = FakeClock()
        self.cluster = PluginCluster(self.clock, listers(*objects), nodes=self.nodes)
        self.known = self.cluster.listers
        args = VolumeBindingArgs(bind_timeout_seconds=timeout)
        self.plugin = VolumeBinding(args, self.cluster.handle)

    def attempt(self, *claims: str, name: str = "p") -> Attempt:
        a_pod = pod(name, claims=claims)
        self.cluster.pods[a_pod.key] = a_pod
        return Attempt(self.plugin, a_pod, self.nodes)

    def volume(self, name: str) -> PersistentVolume:
        found = self.known.persistent_volumes.get("", name)
        assert found is not None, name
        return found

    def claim(self, name: str) -> PersistentVolumeClaim:
        found = self.known.persistent_volume_claims.get("default", name)
        assert found is not None, name
        return found

    def finish(self, name: str, volume_name: str) -> None:
        """Do the volume controller's part for a claim."""
        old = self.claim(name)
        meta = msgspec.structs.replace(
            old.metadata, annotations={**old.metadata.annotations, BIND_COMPLETED: "yes"}
        )
        spec = msgspec.structs.replace(old.spec, volume_name=volume_name)
        add(self.known, msgspec.structs.replace(old, metadata=meta, spec=spec))

    async def bind(self, attempt: Attempt) -> asyncio.Task[Status | None]:
        """Start PreBind and let it write."""
        pre_bind = self.plugin.pre_bind(attempt.state, attempt.pod, "n1")
        task = asyncio.create_task(pre_bind, name="pre_bind")
        await self.pass_time(0)
        return task

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for _ in range(5):
            await asyncio.sleep(0)


# Reserve.


def test_a_pod_without_claims_needs_nothing() -> None:
    attempt = Bench().attempt()
    assert attempt.reserve() is None
    assert attempt.pre_flight() == SKIP
    attempt.unreserve()


def test_bound_claims_need_nothing() -> None:
    attempt = Bench(claim(bound_to="pv"), volume(claim=claim())).attempt("data")
    assert attempt.fits
    assert attempt.reserve() is None
    assert attempt.pre_flight() == SKIP


def test_two_pods_do_not_get_the_same_volume() -> None:
    bench = Bench(LOCAL, claim("c1"), claim("c2"), volume())
    first = bench.attempt("c1", name="first")
    assert first.reserve() is None
    assert first.pre_flight() is None
    assert not bench.attempt("c2", name="second").fits

    first.unreserve()
    assert bench.attempt("c2", name="second").fits


def test_what_became_impossible_since_filter_is_refused() -> None:
    bench = Bench(LOCAL, claim("c1"), claim("c2"), volume())
    first, second = bench.attempt("c1", name="first"), bench.attempt("c2", name="second")
    assert first.fits
    assert second.fits
    assert first.reserve() is None
    assert second.reserve() == BIND_CONFLICT
    second.unreserve()
    assert bench.attempt("c1", name="first").fits


def test_pods_that_share_a_claim_agree_on_its_volume() -> None:
    bench = Bench(LOCAL, claim("c"), volume("v1"), volume("v2"))
    first, second = bench.attempt("c", name="first"), bench.attempt("c", name="second")
    assert first.reserve() is None
    assert second.reserve() is None
    second.unreserve()
    third = bench.attempt("c", name="third")
    assert third.reserve() is None
    (binding,) = third.state.read(POD_VOLUMES).static_bindings
    assert binding.volume.metadata.name == "v1"


def test_a_node_that_is_gone() -> None:
    bench = Bench(LOCAL, claim("c"), volume())
    attempt = bench.attempt("c")
    bench.nodes.remove_node(bench.nodes.row_of["n1"])
    assert attempt.reserve() == Status.error('node "n1" not found')
    attempt.unreserve()


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param(
            volume(), volume(claim=claim(), annotations={BOUND_BY_CONTROLLER: "yes"}), id="free"
        ),
        pytest.param(
            volume(claim=reference(claim(), uid="")), volume(claim=claim()), id="reserved by name"
        ),
        pytest.param(volume(claim=claim()), volume(claim=claim()), id="bound already"),
    ],
)
def test_bound_to(before: PersistentVolume, want: PersistentVolume) -> None:
    bound = bound_to(before, claim())
    assert bound.spec == want.spec
    assert bound.metadata == want.metadata
    assert (bound is before) == (before == want)


def test_provisioned_for() -> None:
    assert provisioned_for(claim(), "n1") == claim(selected="n1")
    selected = claim(selected="n1")
    assert provisioned_for(selected, "n1") is selected


# PreBind.


async def test_an_existing_volume_is_bound() -> None:
    bench = Bench(LOCAL, claim("c"), volume())
    attempt = bench.attempt("c")
    assert attempt.reserve() is None
    task = await bench.bind(attempt)
    written = bench.volume("pv")
    assert written.spec.claim_ref == reference(claim("c"))
    assert written.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert bench.claim("c") == claim("c")

    await bench.pass_time(1)
    assert not task.done()
    bench.finish("c", "pv")
    await bench.pass_time(0.5)
    assert not task.done()
    await bench.pass_time(0.5)
    assert task.result() is None


async def test_a_new_volume_is_asked_for() -> None:
    bench = Bench(DYNAMIC, claim("c", storage_class="dyn"))
    attempt = bench.attempt("c")
    assert attempt.reserve() is None
    task = await bench.bind(attempt)
    assert bench.claim("c").metadata.annotations == {SELECTED_NODE: "n1"}

    bench.finish("c", "new")
    await bench.pass_time(1)
    assert not task.done(), "the volume itself is not known yet"
    add(bench.known, volume("new", hosts=["n1"], claim=claim("c")))
    await bench.pass_time(1)
    assert task.result() is None


@pytest.mark.parametrize("timeout", [0, 5])
async def test_patience_ends(timeout: int) -> None:
    bench = Bench(LOCAL, claim("c"), volume(), timeout=timeout)
    attempt = bench.attempt("c")
    assert attempt.reserve() is None
    task = await bench.bind(attempt)
    for _ in range(timeout):
        assert not task.done()
        await bench.pass_time(1)
    assert task.result() == Status.error("binding volumes: context deadline exceeded")
    attempt.unreserve()


async def test_what_is_older_than_what_was_written_is_passed_over() -> None:
    bench = Bench(LOCAL, claim("c"), volume(version="9"))
    attempt = bench.attempt("c")
    assert attempt.reserve() is None
    task = await bench.bind(attempt)
    written = bench.volume("pv")
    add(bench.known, volume(version="9"))
    await bench.pass_time(1)
    assert not task.done()
    bench.finish("c", "pv")
    add(bench.known, written)
    await bench.pass_time(1)
    assert task.result() is None


Happening = Callable[[Bench], None]


def moved_away(bench: Bench) -> None:
    bench.nodes.set_node(bench.nodes.row_of["n1"], node("n1", labels={HOSTNAME: "other"}))


def without_node(bench: Bench) -> None:
    bench.nodes.remove_node(bench.nodes.row_of["n1"])


def without_pod(bench: Bench) -> None:
    bench.cluster.pods.clear()


def without_claim(bench: Bench) -> None:
    bench.known.persistent_volume_claims.on_delete(bench.claim("c"))


def without_volume(bench: Bench) -> None:
    bench.known.persistent_volumes.on_delete(bench.volume("pv"))


def claim_reset(bench: Bench) -> None:
    add(bench.known, volume(hosts=["n1"], version="99"))


@pytest.mark.parametrize(
    ("happens", "error"),
    [
        pytest.param(
            without_node, 'failed to get node "n1": node "n1" not found', id="the node goes"
        ),
        pytest.param(
            without_pod, 'pod does not exist any more: pod "p" not found', id="the pod goes"
        ),
        pytest.param(
            without_volume,
            'failed to check binding: persistentvolumes "pv" not found',
            id="the volume goes",
        ),
        pytest.param(
            without_claim,
            'failed to check binding: persistentvolumeclaims "default/c" not found',
            id="the claim goes",
        ),
        pytest.param(claim_reset, 'ClaimRef got reset for pv "pv"', id="the volume is given back"),
        pytest.param(
            moved_away,
            'pv "pv" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="the node loses its label",
        ),
    ],
)
async def test_an_existing_volume_will_not_be_bound(happens: Happening, error: str) -> None:
    bench = Bench(LOCAL, claim("c"), volume(hosts=["n1"]))
    attempt = bench.attempt("c")
    assert attempt.reserve() is None
    task = await bench.bind(attempt)
    happens(bench)
    await bench.pass_time(1)
    assert task.result() == Status.error(f"binding volumes: {error}")


def annotated(**annotations: str) -> Happening:
    """Have the claim come back with these annotations only."""
    return lambda bench: add(
        bench.known, claim("c", storage_class="dyn", version="99", annotations=annotations)
    )


def out_of_reach(bench: Bench) -> None:
    bench.finish("c", "new")
    add(bench.known, volume("new", hosts=["n2"]))


@pytest.mark.parametrize(
    ("happens", "error"),
    [
        pytest.param(
            without_claim,
            'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found',
            id="the claim goes",
        ),
        pytest.param(
            annotated(), 'selectedNode annotation reset for PVC "c"', id="no annotation is left"
        ),
        pytest.param(
            annotated(other="x"), 'provisioning failed for PVC "c"', id="the provisioner gave up"
        ),
        pytest.param(
            annotated(**{SELECTED_NODE: "n2"}),
            'provisioning failed for PVC "c"',
            id="another node is selected",
        ),
        pytest.param(
            out_of_reach,
            'pv "new" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="the new volume is elsewhere",
        ),
    ],
)
async def test_a_new_volume_will_not_come(happens: Happening, error: str) -> None:
    bench = Bench(DYNAMIC, claim("c", storage_class="dyn"))
    attempt = bench.attempt("c")
    assert attempt.reserve() is None
    task = await bench.bind(attempt)
    happens(bench)
    await bench.pass_time(1)
    assert task.result() == Status.error(f"binding volumes: {error}")


async def test_a_write_that_fails_ends_the_attempt() -> None:
    bench = Bench(LOCAL, claim("c"), volume())
    bench.cluster.update_error = OSError("the object has been modified")
    attempt = bench.attempt("c")
    assert attempt.reserve() is None
    task = await bench.bind(attempt)
    assert task.result() == Status.error("the object has been modified")
    attempt.unreserve()
    assert bench.attempt("c", name="again").fits
