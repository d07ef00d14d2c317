"""What is sent, against what kube-scheduler 1.36.2 was recorded to send, and what is understood."""

import pytest

from berth.kube.client.errors import ApiError, ConflictError
from berth.kube.objects.cluster import LeaseSpec
from berth.runtime.clock import FakeClock
from berth.service.leaderelection.lease_lock import LeaseLock, decode
from tests.kube.client.fake_api import FakeApi, Request
from tests.service.leaderelection.lease_api import EVENTS, LEASE, LEASES, LeaseApi

ME = "host-1_7c749870-d400-4eb8-a587-05e1e69e4284"
SPEC = LeaseSpec(
    holder_identity=ME,
    lease_duration_seconds=15,
    acquire_time="2026-11-20T13:06:11.452398Z",
    renew_time="2026-11-20T13:06:11.460242Z",
    lease_transitions=0,
)
SPEC_SENT = {
    "holderIdentity": ME,
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-11-20T13:06:11.452398Z",
    "renewTime": "2026-11-20T13:06:11.460242Z",
    "leaseTransitions": 0,
}
METADATA = {
    "name": "kube-scheduler",
    "namespace": "kube-system",
    "uid": "79390dd9-fb88-409b-9905-4b4b8f6343d2",
    "resourceVersion": "226",
    "creationTimestamp": "2026-11-20T13:06:11Z",
    "labels": {"team": "infra"},
    "managedFields": [{"manager": "kube-scheduler", "operation": "Update"}],
}
STORED = (
    b'{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"kube-scheduler",'
    b'"namespace":"kube-system","uid":"79390dd9-fb88-409b-9905-4b4b8f6343d2",'
    b'"resourceVersion":"226","creationTimestamp":"2026-11-20T13:06:11Z",'
    b'"labels":{"team":"infra"},'
    b'"managedFields":[{"manager":"kube-scheduler","operation":"Update"}]},'
    b'"spec":{"holderIdentity":"old","preferredHolder":"x","strategy":"OldestEmulationVersion"}}'
)


def lock(api: FakeApi | LeaseApi) -> LeaseLock:
    return LeaseLock(
        api,
        namespace="kube-system",
        name="kube-scheduler",
        component="default-scheduler",
        clock=FakeClock(1_795_179_971.5),
    )


async def test_create() -> None:
    api = FakeApi(lambda _request: STORED)
    await lock(api).create(SPEC, timeout=5.0)

    assert api.requests == [
        Request(
            "POST",
            LEASES,
            {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
                "spec": SPEC_SENT,
            },
            params={"timeout": "5s"},
        )
    ]


async def test_update_sends_the_object_as_it_was_with_a_new_spec() -> None:
    api = FakeApi(lambda _request: STORED)
    await lock(api).update(decode(STORED), SPEC, timeout=5.0)

    assert api.requests == [
        Request(
            "PUT",
            LEASE,
            {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": METADATA,
                "spec": SPEC_SENT,
            },
            params={"timeout": "5s"},
        )
    ]


async def test_an_event_on_the_lease() -> None:
    api = FakeApi()
    await lock(api).event(decode(STORED), f"{ME} became leader", timeout=5.0)

    assert api.requests == [
        Request(
            "POST",
            EVENTS,
            {
                "kind": "Event",
                "apiVersion": "v1",
                "metadata": {"name": "kube-scheduler.18e9c2ac3d274300", "namespace": "kube-system"},
                "involvedObject": {
                    "kind": "Lease",
                    "namespace": "kube-system",
                    "name": "kube-scheduler",
                    "uid": "79390dd9-fb88-409b-9905-4b4b8f6343d2",
                    "apiVersion": "coordination.k8s.io/v1",
                    "resourceVersion": "226",
                },
                "reason": "LeaderElection",
                "message": f"{ME} became leader",
                "source": {"component": "default-scheduler"},
                "firstTimestamp": "2026-11-20T13:06:11Z",
                "lastTimestamp": "2026-11-20T13:06:11Z",
                "count": 1,
                "type": "Normal",
                "eventTime": None,
                "reportingComponent": "default-scheduler",
                "reportingInstance": "",
            },
        )
    ]


@pytest.mark.parametrize(
    ("timeout", "told"),
    [pytest.param(5.0, "5s", id="whole seconds"), pytest.param(1.25, "1.25s", id="a fraction")],
)
async def test_the_server_is_told_how_long_we_wait(timeout: float, told: str) -> None:
    api = LeaseApi(FakeClock())
    await lock(api).get(timeout=timeout)

    assert api.params == [{"timeout": told}]


async def test_no_lease_is_none() -> None:
    assert await lock(LeaseApi(FakeClock())).get(timeout=5.0) is None


async def test_what_was_read_and_other_errors_are_passed_on() -> None:
    conflict = ConflictError(409, "Conflict", "changed")
    api = FakeApi(lambda request: STORED if request.method == "GET" else conflict)
    lease = await lock(api).get(timeout=5.0)

    assert lease is not None
    assert lease.spec == LeaseSpec(holder_identity="old")
    with pytest.raises(ConflictError):
        await lock(api).update(lease, SPEC, timeout=5.0)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"spec":{"holderIdentity":5}}', id="a holder that is no string"),
        pytest.param(b'{"spec":[1]}', id="a spec that is no object"),
        pytest.param(b'{"x":%s' % (b"[" * 20_000), id="brackets within brackets"),
        pytest.param(b'{"\xff":1}', id="no text"),
    ],
)
def test_an_answer_that_is_no_lease(answer: bytes) -> None:
    with pytest.raises(ApiError, match="not a Lease: "):
        decode(answer)


def test_a_lease_without_spec_is_nobodys() -> None:
    assert decode(b'{"metadata":{}}').spec == LeaseSpec()
