"""What the API server does with pods before a scheduler sees them is part of the answer."""

from typing import Any, Final

import pytest

from berth.insight.whatif.admission import KINDS, Policies
from berth.insight.whatif.manifests import QuestionError
from berth.insight.whatif.snapshot import Snapshot, decode
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.policy import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    ScopedResourceSelectorRequirement,
    ScopeSelector,
)
from tests.builders import node, pod, priority_class
from tests.insight.whatif.asking import ask, deployment, manifest, reread, snapshot

BIG: Final = node("big", cpu="64", memory="256Gi")
META: Final = ObjectMeta(name="limits", namespace="shop")


def quota(
    hard: dict[str, Any], used: dict[str, Any], *scopes: str, classes: tuple[str, ...] = ()
) -> ResourceQuota:
    expression = ScopedResourceSelectorRequirement("PriorityClass", "In", classes)
    selector = ScopeSelector((expression,)) if classes else None
    return ResourceQuota(
        ObjectMeta(name="compute", namespace="shop"),
        ResourceQuotaSpec(scopes, selector),
        ResourceQuotaStatus(hard, used),
    )


def limits(**item: Any) -> LimitRange:
    return LimitRange(META, LimitRangeSpec((LimitRangeItem(type="Container", **item),)))


def cluster(*policies: Any, objects: tuple[Any, ...] = (BIG,)) -> Snapshot:
    """A cluster of which all that admission goes by is known."""
    by_kind: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for policy in policies:
        by_kind[type(policy).__name__].append(policy)
    taken = snapshot(*objects)
    known: Policies = by_kind
    return reread(Snapshot(taken.time, taken.config, taken.objects, policies=known))


EXCEEDED: Final = "exceeded quota: compute, requested: pods=1, used: pods=10, limited: pods=10"


def test_a_quota_lets_some_replicas_be_created_and_the_answer_says_why_no_more() -> None:
    found = ask(
        cluster(quota({"pods": "10"}, {"pods": "2"})),
        templates=[{"manifest": deployment(replicas=12)}],
    )

    assert not found.fits
    assert len(found.placements) == 8
    (left,) = found.unplaced
    assert left.message == f'pods "web-8" is forbidden: {EXCEEDED}'
    assert len(left.pods) == 4
    assert found.admission == (
        "includes PriorityClasses, LimitRanges and ResourceQuotas; excludes webhooks and"
        " admission policies"
    )


@pytest.mark.parametrize(
    ("policies", "spec", "created", "says"),
    [
        pytest.param(
            [quota({"requests.cpu": "3"}, {"requests.cpu": "500m"})],
            {},
            2,
            "exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=2500m,"
            " limited: requests.cpu=3",
            id="cpu",
        ),
        pytest.param(
            [quota({"limits.cpu": "9"}, {"limits.cpu": "0"})],
            {},
            0,
            "failed quota: compute: must specify limits.cpu for: main",
            id="a limit that must be given",
        ),
        pytest.param(
            [quota({"limits.cpu": "3"}, {"limits.cpu": "0"}), limits(default={"cpu": "2"})],
            {},
            1,
            "exceeded quota: compute, requested: limits.cpu=2, used: limits.cpu=2,"
            " limited: limits.cpu=3",
            id="a limit that a LimitRange gives",
        ),
        pytest.param(
            [limits(max={"cpu": "500m"}, default={"cpu": "1"})],
            {},
            0,
            "maximum cpu usage per Container is 500m, but limit is 1",
            id="more than a LimitRange allows",
        ),
        pytest.param(
            [quota({"pods": "0"}, {"pods": "0"}, classes=("gold",)), priority_class("gold", 7)],
            {"priorityClassName": "gold"},
            0,
            "exceeded quota: compute, requested: pods=1, used: pods=0, limited: pods=0",
            id="of a priority class",
        ),
        pytest.param(
            [quota({"pods": "0"}, {"pods": "0"}, classes=("gold",)), priority_class("gold", 7)],
            {},
            4,
            "",
            id="of a priority class that the pods have not",
        ),
        pytest.param(
            [quota({"pods": "0"}, {"pods": "0"}, "BestEffort")], {}, 4, "", id="of another scope"
        ),
        pytest.param(
            [quota({"pods": "9"}, {})],
            {},
            0,
            "status unknown for quota: compute, resources: pods",
            id="a quota that nobody has counted yet",
        ),
    ],
)
def test_quotas_and_limit_ranges(
    policies: list[Any], spec: dict[str, Any], created: int, says: str
) -> None:
    asked = deployment(replicas=4, **spec)
    found = ask(cluster(*policies), templates=[{"manifest": asked}])

    assert len(found.placements) == created
    assert found.fits is not bool(says)
    messages = [each.message.partition(" is forbidden: ")[2] for each in found.unplaced]
    assert messages == ([says] if says else [])


def test_requests_that_a_limit_range_gives_take_room() -> None:
    silent = deployment(replicas=3)
    del silent["spec"]["template"]["spec"]["containers"][0]["resources"]
    given = cluster(limits(default_request={"cpu": "30"}))

    assert len(ask(given, templates=[{"manifest": silent}]).placements) == 2
    assert len(ask(cluster(), templates=[{"manifest": silent}]).placements) == 3


def test_claims_of_a_stateful_set_count() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    asked = deployment(kind="StatefulSet", replicas=3)
    asked["spec"]["volumeClaimTemplates"] = [claim]
    found = ask(
        cluster(quota({"requests.storage": "2Gi"}, {"requests.storage": "0"})),
        templates=[{"manifest": asked}],
    )

    refused = next(each for each in found.unplaced if "forbidden" in each.message)
    assert refused.pods == ("shop/web-2",)
    assert refused.message == (
        'persistentvolumeclaims "data-web-2" is forbidden: exceeded quota: compute, requested:'
        " requests.storage=1Gi, used: requests.storage=2Gi, limited: requests.storage=2Gi"
    )


def test_a_pod_that_goes_gives_back_what_it_used() -> None:
    full = quota({"pods": "1"}, {"pods": "1"})
    old = pod("old", ns="shop", cpu=1, node="big")
    taken = cluster(full, objects=(BIG, old))
    asked = [{"manifest": deployment()}]

    assert not ask(taken, templates=asked).fits
    assert ask(taken, templates=asked, removePods={"names": ["shop/old"]}).fits
    again = manifest(pod("old", ns="shop", cpu=2))
    assert ask(taken, pods=[again]).placements == {"shop/old": "big"}


def test_priorities_of_classes() -> None:
    low, never = pod("low", cpu=60, node="big", priority=1), "Never"
    classes = [
        priority_class("gold", 7),
        priority_class("polite", 8, preemption_policy=never),
        priority_class("plain", 3, is_default=True),
    ]
    taken = cluster(*classes, objects=(BIG, low))

    def asked(**spec: Any) -> bool:
        templates = [{"manifest": deployment(cpu="60", **spec)}]
        return ask(taken, templates=templates, preemption=True).fits

    assert asked(priorityClassName="gold")
    assert not asked(priorityClassName="polite")
    assert asked()  # of the default class
    with pytest.raises(QuestionError, match="no PriorityClass with name silver was found"):
        asked(priorityClassName="silver")


def test_what_nobody_could_read_is_told() -> None:
    taken = snapshot(BIG)
    found = ask(taken, templates=[{"manifest": deployment()}])

    assert found.fits
    assert found.admission == (
        "excludes webhooks and admission policies, and PriorityClasses, LimitRanges and"
        " ResourceQuotas, which could not be read"
    )
    assert not ask(taken).admission
    with pytest.raises(QuestionError, match="give its value in priorityClasses"):
        ask(taken, templates=[{"manifest": deployment(priorityClassName="gold")}])


def test_a_list_of_kubectl_has_them_and_one_that_is_malformed_is_left_out() -> None:
    text = b"""{"kind": "List", "apiVersion": "v1", "items": [
        {"kind": "PriorityClass", "metadata": {"name": "gold", "annotations": {"a": "secret"}},
         "value": 7},
        {"kind": "PriorityClass", "metadata": {"name": "bad"}, "value": "high"},
        {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"},
         "status": {"hard": {"pods": "x"}, "used": {"pods": "1"}}}]}"""
    found = decode(text, source="file")

    (gold,) = found.policies["PriorityClass"]
    assert gold == priority_class("gold", 7).__class__(metadata=ObjectMeta(name="gold"), value=7)
    assert found.policies["ResourceQuota"] == []
    assert "LimitRange" not in found.policies


def test_no_node_is_looked_for_that_a_quota_would_leave_empty() -> None:
    small = node("small", cpu="1")
    found = ask(
        cluster(quota({"pods": "3"}, {"pods": "0"}), objects=(small,)),
        templates=[{"manifest": deployment(replicas=9)}],
        findNodes={"like": "small"},
    )

    assert found.nodes_needed is not None
    assert found.nodes_needed.count == 2
