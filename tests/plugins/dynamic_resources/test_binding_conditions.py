"""Devices that must get ready: what their drivers say."""

from collections.abc import Sequence

import msgspec
import pytest

from berth.kube.objects.devices import AllocatedDeviceStatus, DeviceCondition, ResourceClaim
from berth_plugins.dynamic_resources.binding_conditions import (
    BindingFailedError,
    has_conditions,
    is_late,
    is_lost,
    is_ready,
)
from tests.device_builders import allocation, claim, got, said

SINCE = "2026-01-01T00:00:00Z"
START = 1_767_225_600.0


def waiting(*statuses: AllocatedDeviceStatus) -> ResourceClaim:
    devices = [
        got("a", conditions=["Up", "Wired"], failures=["Bad"]),
        got("b", conditions=["Up"]),
        got("c"),
    ]
    return claim("c", allocated=allocation(*devices, since=SINCE), devices=statuses)


@pytest.mark.parametrize(
    ("statuses", "ready"),
    [
        pytest.param([], False, id="nothing is said yet"),
        pytest.param([said("a", "Up", "Wired")], False, id="one is ready"),
        pytest.param([said("a", "Up"), said("b", "Up")], False, id="one is half ready"),
        pytest.param([said("a", "Wired", "Up"), said("b", "Up")], True, id="all are"),
    ],
)
def test_readiness(statuses: Sequence[AllocatedDeviceStatus], ready: bool) -> None:
    assert is_ready(waiting(*statuses)) is ready


def bad(device: str, reason: str, message: str) -> AllocatedDeviceStatus:
    condition = DeviceCondition(type="Bad", status="True", reason=reason, message=message)
    return msgspec.structs.replace(said(device), conditions=(condition,))


@pytest.mark.parametrize(
    ("message", "quoted"),
    [
        pytest.param("it broke", '"it broke"', id="plain"),
        pytest.param('a "b"\n\x1b\u200b\\', r'"a \"b\"\n\x1b\u200b\\"', id="as Go quotes it"),
    ],
)
def test_a_failure_is_told(message: str, quoted: str) -> None:
    with pytest.raises(BindingFailedError) as failure:
        is_ready(waiting(bad("a", "Burnt", message), said("b", "Up")))
    assert str(failure.value) == f"device binding failed: claim=c, reason=Burnt, message={quoted}"


def test_a_claim_without_an_allocation_is_never_ready() -> None:
    assert not is_ready(claim("c"))


def test_the_first_device_that_is_not_ready_decides() -> None:
    first, second = (got(name, conditions=["Up"], failures=["Bad"]) for name in "ab")
    both = claim("c", allocated=allocation(first, second), devices=[said("a"), said("b", "Bad")])
    assert not is_ready(both)


def test_a_device_without_binding_conditions_cannot_fail() -> None:
    careless = got("a", failures=["Bad"])
    assert is_ready(claim("c", allocated=allocation(careless), devices=[said("a", "Bad")]))


def test_who_has_to_wait() -> None:
    plain = claim("c", allocated=allocation("a"))
    assert [has_conditions(one) for one in (waiting(), plain, claim("c"))] == [True, False, False]


@pytest.mark.parametrize(
    ("a_claim", "seconds", "lost"),
    [
        pytest.param(waiting(), 599.0, False, id="there is time"),
        pytest.param(waiting(), 600.0, False, id="there is no time left"),
        pytest.param(waiting(), 600.5, True, id="the time is over"),
        pytest.param(waiting(said("a", "Bad")), 0.0, True, id="it has failed"),
        pytest.param(
            waiting(said("a", "Up", "Wired"), said("b", "Up")), 999.0, False, id="it is ready"
        ),
        pytest.param(
            claim("c", allocated=allocation("a", since=SINCE)),
            999.0,
            False,
            id="nothing to wait for",
        ),
    ],
)
def test_waiting_in_vain(a_claim: ResourceClaim, seconds: float, lost: bool) -> None:
    assert is_lost(a_claim, timeout=600.0, now=START + seconds) is lost


def test_without_a_time_of_allocation_nothing_is_late() -> None:
    assert not is_late(claim("c", allocated=allocation("a")), timeout=1.0, now=START)
    assert not is_late(claim("c"), timeout=1.0, now=START)
