"""What a replica may hear a second late."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from berth.kube.informer.identity import identity_of
from berth.kube.informer.watch_event import WatchEvent, decode_watch_event, event_decoder
from berth.kube.objects.pod import PodSpec
from berth.kube.objects.shared_parts import PodOutline
from berth.scheduler.shards.foreign import BOUND_SECONDS, WAITING_SECONDS, ForeignPods
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import Slots, SpecHead, offer, refused, slot_of

SLOTS = 4096
OWN = {slot_of(name, SLOTS) for name in ("own-node", "own-uid", "own-namespace")}
AT = "2026-01-01T00:00:00Z"

CLAIM: Any = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
"""Makes the namespace the home of a pod."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ONLY_NODE = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["own-node"]}]}
    ]
}


@pytest.fixture(params=["outlines", "raw"])
def decode_event(request: pytest.FixtureRequest) -> Callable[[bytes], WatchEvent[Any]]:
    """Of a scheduler without extenders, and of one with some."""
    return event_decoder(PodOutline) if request.param == "outlines" else decode_watch_event


def line(
    *,
    uid: str = "other-uid",
    namespace: str = "other-namespace",
    status: Any = None,
    kind: str = "MODIFIED",
    deleted: bool = False,
    **spec: Any,
) -> bytes:
    metadata = {"name": "p", "namespace": namespace, "uid": uid, "resourceVersion": "7"}
    if deleted:
        metadata["deletionTimestamp"] = AT
    pod: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}}
    if status is not None:
        pod["status"] = status
    return msgspec.json.encode({"type": kind, "object": pod})


def foreign(*, waiting: bool = True) -> ForeignPods:
    ownership = Ownership(Slots(SLOTS))
    ownership.become(frozenset(OWN))
    ownership.ours.add("queued-uid")
    return ForeignPods(
        ownership,
        assumed={"assumed-uid"},
        minding={"minding-namespace"},
        waiting=waiting,
    )


def test_names_of_others_fall_into_other_slots() -> None:
    others = ("other-node", "other-uid", "other-namespace", "queued-uid", "assumed-uid")
    assert not OWN & {slot_of(name, SLOTS) for name in others}


@pytest.mark.parametrize(
    ("pod", "waits"),
    [
        pytest.param(line(), True, id="a pod of another home"),
        pytest.param(line(uid="own-uid"), False, id="one of ours"),
        pytest.param(line(uid="own-uid", **CLAIM), True, id="one whose home is a namespace"),
        pytest.param(line(namespace="own-namespace", **CLAIM), False, id="our namespace"),
        pytest.param(line(nodeName="other-node"), True, id="on another's node"),
        pytest.param(line(nodeName="own-node"), False, id="on one of our nodes"),
        pytest.param(line(uid="own-uid", nodeName="other-node"), True, id="ours, and done with"),
        pytest.param(line(uid="queued-uid", nodeName="other-node"), False, id="still queued"),
        pytest.param(line(uid="assumed-uid", nodeName="other-node"), False, id="assumed"),
        pytest.param(
            line(namespace="minding-namespace", nodeName="other-node"),
            False,
            id="beside pods of ours that mind it",
        ),
        pytest.param(line(nodeName="other-node", deleted=True), False, id="it is being deleted"),
        pytest.param(
            line(status={"phase": "Pending", "conditions": []}), True, id="it says nothing"
        ),
        pytest.param(
            line(status={"conditions": [{"type": "PodScheduled", "status": "False"}]}),
            True,
            id="it was tried elsewhere",
        ),
        pytest.param(line(status={"conditions": [offer("own-node", at=AT)]}), False, id="offered"),
        pytest.param(line(status={"conditions": [refused("full", at=AT)]}), False, id="refused"),
        pytest.param(line(status={"nominatedNodeName": "n"}), False, id="nominated"),
        pytest.param(
            line(nodeName="other-node", status={"conditions": [refused("full", at=AT)]}),
            True,
            id="refused once, and bound since",
        ),
        pytest.param(
            line(nodeName="own-node").replace(b"nodeName", b"node\\u004eame"),
            False,
            id="on our node, in an unusual spelling",
        ),
        pytest.param(line(kind="ADDED"), True, id="a new one"),
        pytest.param(line(kind="DELETED"), False, id="it is gone"),
        pytest.param(line(kind="BOOKMARK"), False, id="a bookmark"),
        pytest.param(
            b'{"type": "ADDED", "object": {"metadata": {"name": 1}}}', False, id="it cannot be read"
        ),
        pytest.param(line(volumes="x"), False, id="nor can its spec"),
    ],
)
def test_what_may_wait(
    pod: bytes, decode_event: Callable[[bytes], WatchEvent[Any]], *, waits: bool
) -> None:
    answer = foreign().may_wait(decode_event(pod))
    assert (answer is not None) is waits
    if answer is not None:
        obj = msgspec.json.decode(pod)["object"]
        key, version, _ = identity_of(obj)
        seconds = BOUND_SECONDS if "nodeName" in obj["spec"] else WAITING_SECONDS
        assert answer == (key, version, seconds)


def test_where_labels_tell_the_group_no_pod_without_a_node_may_wait(
    decode_event: Callable[[bytes], WatchEvent[Any]],
) -> None:
    pods = foreign(waiting=False)
    assert pods.may_wait(decode_event(line())) is None
    assert pods.may_wait(decode_event(line(nodeName="other-node"))) is not None


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="anywhere"),
        pytest.param(CLAIM, id="a claim"),
        pytest.param({"volumes": [{"name": "v", "emptyDir": {}}]}, id="a volume of no claim"),
        pytest.param({"volumes": [{"name": "v", "ephemeral": {}}]}, id="an ephemeral claim"),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, id="devices"),
        pytest.param({"resourceClaims": [], "schedulingGroup": None}, id="nothing of that"),
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, id="a group"),
        pytest.param({"topologySpreadConstraints": [{"maxSkew": 1}]}, id="spread"),
        pytest.param(
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
            id="spread if it can be",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}}, id="affinity"
        ),
        pytest.param(
            {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}},
            id="anti-affinity",
        ),
        pytest.param({"affinity": {"nodeAffinity": {REQUIRED: ONLY_NODE}}}, id="one node"),
        pytest.param({"nodeSelector": {"pool": "batch"}}, id="a pool"),
        pytest.param({"nodeSelector": {"pool": "other"}}, id="no pool of its own"),
    ],
)
def test_the_head_of_a_spec_has_the_home_of_all_of_it(spec: Any) -> None:
    slots = Slots(SLOTS, label="pool", pools=("batch",))
    data = msgspec.json.encode({"containers": [{"name": "c"}], **spec})
    whole = msgspec.json.decode(data, type=PodSpec)
    head = msgspec.json.decode(data, type=SpecHead)
    where = {"namespace": "own-namespace", "uid": "other-uid"}
    assert slots.home(head, **where) == slots.home(whole, **where)
