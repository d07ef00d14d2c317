"""The soak notices what is broken, and nothing else."""

import copy
from typing import Any

import pytest

from berth.runtime.clock import FakeClock
from berth.tools.bench.shards.truth import Truth
from berth.tools.bench.shards.workload import MIN_COUNT, RESTRICTED
from berth.tools.bench.shards.world import pod_of

Event = tuple[str, str, dict[str, Any]]
"""A kind of objects, the type of an event, and the object."""

ZONES = {"n0": "a", "n1": "b", "n2": "a"}


def pod(kind: str, name: str, node: str = "", *, cpu: str = "250m", **labels: str) -> Event:
    made = pod_of("plain", f"{kind}-1", name)
    made["metadata"].update(uid=f"uid of {name}")
    made["metadata"]["labels"].update({"kind": kind, **labels})
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    if node:
        made["spec"]["nodeName"] = node
    return "pod", "ADDED", made


def with_volume(of: Event) -> Event:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    return _with(of, volumes=[volume])


def with_device(of: Event) -> Event:
    return _with(of, resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])


def in_group(of: Event, least: int) -> Event:
    of[2]["metadata"]["labels"][MIN_COUNT] = str(least)
    return _with(of, schedulingGroup={"podGroupName": "g"})


def _with(of: Event, **spec: Any) -> Event:
    of[2]["spec"].update(spec)
    return of


def bound(of: Event, node: str) -> Event:
    made = copy.deepcopy(of[2])
    made["spec"]["nodeName"] = node
    return of[0], "MODIFIED", made


def gone(of: Event) -> Event:
    return of[0], "DELETED", of[2]


def device_claim(name: str, *devices: tuple[str, str]) -> Event:
    results = [{"driver": "d", "pool": pool, "device": device} for pool, device in devices]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    return "device", "ADDED", {"metadata": _named(name), "status": status}


def volume_claim(name: str, volume: str) -> Event:
    return "volume", "ADDED", {"metadata": _named(name), "spec": {"volumeName": volume}}


def _named(name: str) -> dict[str, str]:
    return {"namespace": "default", "name": name}


def truth_after(*events: Event) -> Truth:
    truth = Truth(None, FakeClock(), ZONES)  # type: ignore[arg-type]  # follows nothing
    told = {
        "pod": truth.saw_pod,
        "device": truth.saw_device_claim,
        "volume": truth.saw_volume_claim,
    }
    for kind, what, obj in events:
        told[kind](what, obj)
    return truth


@pytest.mark.parametrize(
    ("events", "what"),
    [
        pytest.param(
            [pod("plain", "p", "n0", cpu="4"), pod("plain", "q", "n0", cpu="4001m")],
            "n0 has 2 pods, 8001 m",
            id="CPU given twice",
        ),
        pytest.param(
            [pod("plain", f"p{number}", "n0", cpu="1m") for number in range(33)],
            "n0 has 33 pods, 33 m",
            id="a pod too many",
        ),
        pytest.param(
            [pod("apart", "p", "n0"), pod("apart", "q", "n0", **{RESTRICTED: ""})],
            "is beside another on n0",
            id="a pod that must be alone comes to another",
        ),
        pytest.param(
            [pod("apart", "p", "n0", **{RESTRICTED: ""}), pod("apart", "q", "n0")],
            "is beside another on n0",
            id="another comes to a pod that must be alone",
        ),
        pytest.param(
            [pod("spread", "p", "n0"), pod("spread", "q", "n2")],
            "makes {",
            id="two in a zone, none in the other",
        ),
        pytest.param(
            [pod("together", "p", "n0"), pod("together", "q", "n1")],
            "is in another zone than the others",
            id="not together",
        ),
        pytest.param(
            [in_group(pod("group", "p", "n0"), 2)],
            "is one of 1 in its group",
            id="a group starts before it is there",
        ),
        pytest.param(
            [with_volume(pod("volume", "p", "n0")), with_volume(pod("volume", "q", "n0"))],
            "has the ReadWriteOncePod volume of default/p",
            id="a volume of one pod has two",
        ),
        pytest.param(
            [volume_claim("data", "n0.1"), volume_claim("more", "n0.1")],
            "n0.1 is given to default/more and default/data",
            id="a volume is given twice",
        ),
        pytest.param(
            [volume_claim("data", "n1.1"), gone(with_volume(pod("volume", "p", "n0")))],
            None,
            id="a pod that was never seen is gone",
        ),
        pytest.param(
            [
                volume_claim("data", "n1.1"),
                with_volume(pod("volume", "p", "n0")),
                gone(with_volume(pod("volume", "p", "n0"))),
            ],
            "n0 has not n1.1",
            id="a volume of another node",
        ),
        pytest.param(
            [device_claim("gpu", ("n0", "0")), device_claim("other", ("n0", "0"))],
            "('d', 'n0', '0') is given to default/other and default/gpu",
            id="a device is given twice",
        ),
        pytest.param(
            [
                device_claim("gpu", ("n1", "0")),
                with_device(pod("devices", "p", "n0")),
                gone(pod("devices", "p")),
            ],
            "n0 has not the devices of {'n1'}",
            id="a device of another node",
        ),
        pytest.param(
            [pod("plain", "p", "n0"), bound(pod("plain", "p"), "n1")],
            "went from n0 to n1",
            id="a pod is bound twice",
        ),
        pytest.param(
            [
                pod("spread", "p"),
                pod("spread", "q"),
                pod("spread", "r"),
                bound(pod("spread", "p"), "n0"),
                bound(pod("spread", "q"), "n2"),
                bound(pod("spread", "r"), "n1"),
            ],
            None,
            id="binds in another order than they were decided",
        ),
        pytest.param(
            [
                device_claim("gpu", ("n0", "0")),
                device_claim("gpu"),
                device_claim("other", ("n0", "0")),
            ],
            None,
            id="a device that was given back",
        ),
        pytest.param(
            [
                with_volume(pod("volume", "p", "n0")),
                volume_claim("data", "n0.1"),
                gone(with_volume(pod("volume", "p"))),
                with_volume(pod("volume", "q", "n0")),
            ],
            None,
            id="a volume that the next pod has",
        ),
    ],
)
def test_what_is_noticed(events: list[Event], what: str | None) -> None:
    broken = truth_after(*events).broken
    assert len(broken) == (what is not None)
    assert (what or "") in "".join(broken)


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        pytest.param("plain", True, id="there are pods to evict"),
        pytest.param("spread", False, id="there are none"),
    ],
)
def test_a_pod_whose_volume_is_on_a_full_node(kind: str, waits: bool) -> None:
    full = pod(kind, "p", "n0", cpu="8")
    truth = truth_after(volume_claim("data", "n0.1"), full, with_volume(pod("volume", "q")))
    assert [seen.key for seen in truth.waiting] == ["default/q"] * waits


def test_a_pod_whose_volume_another_uses_waits_for_no_scheduler() -> None:
    waiting = [with_volume(pod("volume", "q")), pod("plain", "r")]
    truth = truth_after(with_volume(pod("volume", "p", "n0")), *waiting)
    assert [seen.key for seen in truth.waiting] == ["default/r"]
