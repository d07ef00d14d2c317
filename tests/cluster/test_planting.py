"""Null in every place of every kind, by every kind of write: refused, or stored as Go reads it."""

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cluster.kinds.builtin import STORED
from tests.cluster.at_once import at_once
from tests.cluster.every_kind import EVERY_KIND
from tests.cluster.every_status import STATUSES
from tests.cluster.planting import CREATED, WAYS, Planting, World
from tests.cluster.serving import FAITHFUL


@cache
def world() -> World:
    made = World()
    at_once(made.fill())
    return made


@cache
def plantings() -> list[Planting]:
    return [*world().plantings()]


def test_every_kind_is_there() -> None:
    assert EVERY_KIND.keys() == CREATED.keys()
    with_status = {
        f"{each.group_version}/{each.plural}" for each in STORED if "status" in each.subresources
    }
    assert STATUSES.keys() == with_status & CREATED.keys()


async def check(planting: Planting) -> None:
    """Send it; fail if the answer is a 5xx, or somebody cannot read what is stored."""
    made = world()
    request = made.request(planting)
    if request is None:
        return
    before = made.before[planting.key]
    code, text = await made.ask(request)
    try:
        assert code < 500 or any(each in text for each in FAITHFUL), text
        after = made.stored(planting.key)
        if after is not before:
            resource = CREATED[planting.key]
            made.readers.read(resource, after)
            made.readers.react(resource, before, after)
            await made.shown(planting.key)
    finally:
        made.restore(planting.key)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
async def test_nulls(number: int) -> None:
    await check(plantings()[number % len(plantings())])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("key", "subresource", "path"),
    [
        ("apps/v1/deployments", "status", ("status", "conditions", 0, "type")),
        ("apps/v1/statefulsets", "", ("spec", "volumeClaimTemplates", 0)),
        ("v1/pods", "status", ("status", "containerStatuses", 0, "restartCount")),
        ("policy/v1/poddisruptionbudgets", "", ("spec", "selector", "matchExpressions", 0)),
        ("autoscaling/v2/horizontalpodautoscalers", "", ("spec", "metrics", 0)),
        ("policy/v1/poddisruptionbudgets", "status", ("status", "disruptedPods", "p")),
        ("v1/resourcequotas", "", ("spec", "scopeSelector", "matchExpressions", 0, "values")),
        ("rbac.authorization.k8s.io/v1/roles", "", ("rules", 0, "resourceNames")),
    ],
    ids=lambda each: str(each) if isinstance(each, str) else ".".join(map(str, each)),
)
async def test_what_stopped_somebody(
    key: str, subresource: str, path: tuple[str | int, ...], way: str
) -> None:
    await check(Planting(key, subresource, path, None, way))
