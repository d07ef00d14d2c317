"""Consumable capacity: how much of a device a request gets, and how it is written."""

import pytest

from berth.kube.objects.devices import DeviceCapacity
from berth.kube.objects.quantity import Quantity, parse
from berth_plugins.dynamic_resources.capacity import canonical, share_of
from tests.device_builders import consumable

PLAIN = DeviceCapacity(value="16Gi")
STEPS = consumable("40Gi", default="1Gi", min="1Gi", step="1Gi")
BOUNDED = consumable("40Gi", default="4Gi", min="2Gi", max="10Gi")
VALUES = consumable("40Gi", default="8Gi", values=["2Gi", "4Gi", "8Gi", "16Gi"])


@pytest.mark.parametrize(
    ("capacity", "requested", "want"),
    [
        pytest.param(PLAIN, "3Gi", "3Gi", id="without a policy: what is asked for"),
        pytest.param(PLAIN, None, "16Gi", id="without a policy, nothing asked for: all of it"),
        pytest.param(PLAIN, "17Gi", None, id="more than there is"),
        pytest.param(STEPS, "1500Mi", "2Gi", id="rounded up to a step"),
        pytest.param(STEPS, "500Mi", "1Gi", id="rounded up to the least"),
        pytest.param(STEPS, None, "1Gi", id="nothing asked for: the default"),
        pytest.param(BOUNDED, "1500Mi", "2Gi", id="without steps, too: the least"),
        pytest.param(BOUNDED, "3000Mi", "3000Mi", id="without steps: as asked for"),
        pytest.param(BOUNDED, "20Gi", None, id="more than the most"),
        pytest.param(VALUES, "3Gi", "4Gi", id="rounded up to a valid value"),
        pytest.param(VALUES, "20Gi", None, id="beyond all valid values"),
    ],
)
def test_a_share_follows_the_policy(
    capacity: DeviceCapacity, requested: Quantity | None, want: str | None
) -> None:
    share = share_of(
        {"memory": capacity},
        requested={} if requested is None else {"memory": requested},
        taken={},
    )
    assert (None if share is None else canonical(share["memory"])) == want


@pytest.mark.parametrize(
    ("taken", "fits"),
    [
        pytest.param("13Gi", True, id="what others have leaves enough"),
        pytest.param("14Gi", False, id="what others have leaves too little"),
    ],
)
def test_shares_add_up(taken: str, fits: bool) -> None:
    share = share_of({"memory": PLAIN}, requested={"memory": "3Gi"}, taken={"memory": parse(taken)})
    assert (share is not None) is fits


def test_a_capacity_that_the_device_has_not() -> None:
    assert share_of({"memory": PLAIN}, requested={"cores": "1"}, taken={}) is None


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("1024Mi", "1Gi"),
        ("1500Mi", "1500Mi"),
        ("0.5Gi", "512Mi"),
        ("512", "512"),
        ("1000", "1k"),
        ("1500m", "1500m"),
        ("1000Ki", "1000Ki"),
        ("0Gi", "0"),
        ("0", "0"),
        (2048, "2048"),
        ("1Ki", "1Ki"),
    ],
)
def test_quantities_are_written_as_the_api_does(written: Quantity, want: str) -> None:
    assert canonical(written) == want
