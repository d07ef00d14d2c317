"""What a replica may hear a second late."""

from typing import Any

import msgspec
import pytest

from berth.kube.informer.identity import identity_in
from berth.scheduler.shards.foreign import ForeignPods
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import offer, refused, slot_of

SLOTS = 4096
OWN = {slot_of(name, SLOTS) for name in ("own-node", "own-uid", "own-namespace")}
AT = "2026-01-01T00:00:00Z"

CLAIM: Any = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
"""Makes the namespace the home of a pod."""


def pod_json(
    *,
    uid: str = "other-uid",
    namespace: str = "other-namespace",
    status: Any = None,
    deleted: bool = False,
    **spec: Any,
) -> bytes:
    metadata = {"name": "p", "namespace": namespace, "uid": uid, "resourceVersion": "7"}
    if deleted:
        metadata["deletionTimestamp"] = AT
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}}
    return msgspec.json.encode(pod if status is None else {**pod, "status": status})


def foreign(*, waiting: bool = True) -> ForeignPods:
    ownership = Ownership(SLOTS)
    ownership.become(frozenset(OWN))
    return ForeignPods(
        ownership,
        ours={"queued-uid"},
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
        pytest.param(pod_json(), True, id="a pod of another home"),
        pytest.param(pod_json(uid="own-uid"), False, id="one of ours"),
        pytest.param(pod_json(uid="own-uid", **CLAIM), True, id="one whose home is a namespace"),
        pytest.param(pod_json(namespace="own-namespace", **CLAIM), False, id="our namespace"),
        pytest.param(pod_json(nodeName="other-node"), True, id="on another's node"),
        pytest.param(pod_json(nodeName="own-node"), False, id="on one of our nodes"),
        pytest.param(
            pod_json(uid="own-uid", nodeName="other-node"), True, id="ours, and done with"
        ),
        pytest.param(pod_json(uid="queued-uid", nodeName="other-node"), False, id="still queued"),
        pytest.param(pod_json(uid="assumed-uid", nodeName="other-node"), False, id="assumed"),
        pytest.param(
            pod_json(namespace="minding-namespace", nodeName="other-node"),
            False,
            id="beside pods of ours that mind it",
        ),
        pytest.param(
            pod_json(nodeName="other-node", deleted=True), False, id="it is being deleted"
        ),
        pytest.param(
            pod_json(status={"phase": "Pending", "conditions": []}), True, id="it says nothing"
        ),
        pytest.param(
            pod_json(status={"conditions": [{"type": "PodScheduled", "status": "False"}]}),
            True,
            id="it was tried elsewhere",
        ),
        pytest.param(
            pod_json(status={"conditions": [offer("own-node", at=AT)]}), False, id="offered"
        ),
        pytest.param(
            pod_json(status={"conditions": [refused("full", at=AT)]}), False, id="refused"
        ),
        pytest.param(pod_json(status={"nominatedNodeName": "n"}), False, id="nominated"),
        pytest.param(
            pod_json(nodeName="other-node", status={"conditions": [refused("full", at=AT)]}),
            True,
            id="refused once, and bound since",
        ),
        pytest.param(b'{"metadata": {"name": 1}}', False, id="it cannot be read"),
        pytest.param(pod_json(overhead={"cpu": "x"}), False, id="nor can its spec"),
        pytest.param(b"{", False, id="it is cut off"),
    ],
)
def test_what_may_wait(pod: bytes, *, waits: bool) -> None:
    identity = foreign().may_wait(pod)
    assert (identity is not None) is waits
    assert identity is None or identity == identity_in(pod)


def test_where_labels_tell_the_group_no_pod_without_a_node_may_wait() -> None:
    pods = foreign(waiting=False)
    assert pods.may_wait(pod_json()) is None
    assert pods.may_wait(pod_json(nodeName="other-node")) is not None
