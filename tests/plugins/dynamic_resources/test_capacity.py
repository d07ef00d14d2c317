"""Consumable capacity: how much of a device a request gets, and how it is written."""

import pytest

from berth.kube.objects.devices import DeviceCapacity
from berth.kube.objects.quantity import Quantity, parse
from berth.runtime.release import EffectiveVersion
from berth.scheduler.config.feature_gates import enabled_features
from berth_plugins.dynamic_resources.capacity import canonical, share_of
from berth_plugins.dynamic_resources.features import Features
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


HALVES = consumable("10", default="500m", min="500m", max="4", step="500m")
MIXED = consumable("10", min="0.0001", max="4", step="1")


@pytest.mark.parametrize(
    ("capacity", "requested", "in_whole_units", "in_thousandths"),
    [
        pytest.param(HALVES, "1200m", "2", "1500m", id="rounded up to a step"),
        pytest.param(HALVES, "1500m", "2", "1500m", id="a step"),
        pytest.param(HALVES, "1999m", "2", "2", id="a step that is whole"),
        pytest.param(HALVES, "1", "1", "1", id="a whole number"),
        pytest.param(HALVES, "3600m", "4", "4", id="the most"),
        pytest.param(HALVES, "4100m", None, None, id="more than the most"),
        pytest.param(HALVES, None, "500m", "500m", id="nothing asked for: the default"),
        pytest.param(MIXED, "1001m", "2", "1001m", id="fractions of a thousandth count as one"),
        pytest.param(MIXED, "1002m", "2", "2001m", id="and the next step is one more"),
        pytest.param(STEPS, "1500Mi", "2Gi", "2Gi", id="a range of whole numbers"),
        pytest.param(
            consumable("9E", min="500m", step="1"),
            "10P",
            "9765625000000Ki",
            None,
            id="too many thousandths for int64",
        ),
    ],
)
def test_ranges_with_fractions(
    capacity: DeviceCapacity,
    requested: Quantity | None,
    in_whole_units: str | None,
    in_thousandths: str | None,
) -> None:
    """With DRAFractionalCapacityRange (1.37 spec N4.7)."""
    wanted: dict[str, Quantity] = {} if requested is None else {"memory": requested}
    for is_on, want in ((False, in_whole_units), (True, in_thousandths)):
        features = Features(fractional_capacity=is_on)
        share = share_of({"memory": capacity}, requested=wanted, taken={}, features=features)
        assert (share and canonical(share["memory"])) == want


@pytest.mark.parametrize(
    ("version", "want"),
    [
        pytest.param(EffectiveVersion.of("1.36"), False, id="1.36"),
        pytest.param(EffectiveVersion.of("1.37"), False, id="1.37"),
        pytest.param(EffectiveVersion.of("1.37", "1.37"), True, id="1.37 and nothing older"),
    ],
)
def test_fractions_count_when_no_older_release_has_to_be_compatible(
    version: EffectiveVersion, want: bool
) -> None:
    assert Features.of(enabled_features({}, version)).fractional_capacity is want


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
