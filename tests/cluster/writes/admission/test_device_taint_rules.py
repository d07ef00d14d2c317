"""DeviceTaintRules: what is refused, and when a taint was added (spec G15.1)."""

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.gated import gated_kinds
from berth.cluster.resources import Object
from berth.runtime.clock import rfc3339
from tests.cluster.bodies import complaints
from tests.cluster.serving import NOW
from tests.cluster.writes.booted import Booted

GATE = "DRADeviceTaintRules"
(RULES,) = gated_kinds((GATE,), "1.36")
TAINT: Object = {"key": "example.com/broken", "effect": "NoSchedule"}


def rule(taint: Object = TAINT, **spec: Object) -> Object:
    return {"metadata": {"name": "r"}, "spec": {"taint": {**taint}, **spec}}


def test_the_time_of_a_taint() -> None:
    cluster = Booted(GATE, release="1.36")
    created = cluster.create(RULES, rule())
    assert created["spec"]["taint"]["timeAdded"] == rfc3339(NOW)
    assert created["status"] == {}

    def change(**fields: str) -> str:
        def changed(obj: Object) -> Object:
            return {**obj, "spec": {"taint": {**obj["spec"]["taint"], **fields}}}

        return str(cluster.update(RULES, "r", changed)["spec"]["taint"]["timeAdded"])

    cluster.clock.advance(60)
    assert change(value="more") == rfc3339(NOW), "the effect is the same"
    assert change(effect="NoExecute") == rfc3339(NOW + 60)
    given = "2026-01-01T00:00:00Z"
    assert change(effect="None", timeAdded=given) == given, "the client knows better"


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(rule(), [], id="every device"),
        pytest.param(
            rule(deviceSelector={"driver": "gpu.example.com", "pool": "a/b.c", "device": "gpu-0"}),
            [],
            id="one device",
        ),
        pytest.param(rule(deviceSelector={"device": "gpu-0"}), [], id="a device of any driver"),
        pytest.param(rule({**TAINT, "effect": "None"}), [], id="an effect that only tells"),
        pytest.param(
            rule({"key": "a"}), ["spec.taint.effect: Required value"], id="without an effect"
        ),
        pytest.param(
            rule({**TAINT, "effect": "PreferNoSchedule"}),
            [
                'spec.taint.effect: Unsupported value: "PreferNoSchedule": supported values: '
                '"NoExecute", "NoSchedule", "None"'
            ],
            id="an effect of nodes",
        ),
    ],
)
def test_what_is_refused(obj: Object, want: list[str]) -> None:
    assert complaints(RULES.strategy, obj) == want


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"deviceSelector": {"driver": "GPU"}}, "spec.deviceSelector.driver", id="1"),
        pytest.param(
            {"deviceSelector": {"driver": "a" * 64}}, "spec.deviceSelector.driver", id="too long"
        ),
        pytest.param({"deviceSelector": {"pool": "a//b"}}, "spec.deviceSelector.pool", id="pool"),
        pytest.param(
            {"deviceSelector": {"device": "a.b"}}, "spec.deviceSelector.device", id="device"
        ),
        pytest.param({"taint": {**TAINT, "key": ""}}, "spec.taint.key", id="key"),
        pytest.param({"taint": {**TAINT, "value": "a b"}}, "spec.taint.value", id="value"),
    ],
)
def test_names_that_are_none(spec: Object, field: str) -> None:
    with pytest.raises(StatusError) as refusal:
        Booted(GATE, release="1.36").create(RULES, rule(**spec))
    assert f"{field}: Invalid value" in str(refusal.value)


def test_the_status_has_eight_conditions() -> None:
    condition = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": rfc3339(NOW)}
    conditions = [{**condition, "type": f"T{i}"} for i in range(9)]
    new = {**rule(), "status": {"conditions": conditions}}
    [error] = RULES.strategy.validate_status(new, rule())
    assert error.message == "Too many: 9: must have at most 8 items"
