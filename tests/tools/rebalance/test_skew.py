"""Skew is counted without a look at all pods, and comes to the same as with one."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.selectors import compile_selector
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.rebalance.skew import Constraint, constraints
from berth.tools.rebalance.trial import LabelledPods, Trial
from berth_plugins.registry import IN_TREE
from tests.builders import HOSTNAME, ZONE, node, pod, selector, spread
from tests.insight.whatif.asking import snapshot

KEYS = (ZONE, HOSTNAME)


def by_domain(constraint: Constraint, trial: Trial) -> dict[str, set[str]]:
    """Go through all pods of all nodes."""
    found: dict[str, set[str]] = {}
    affinity = constraint.example.template.required_node_affinity
    for name in trial.nodes:
        labels = trial.labels(name)
        domain = labels.get(constraint.topology_key)
        if domain is None or (affinity is not None and not affinity.matches(labels, name)):
            continue
        found.setdefault(domain, set()).update(
            each.key
            for each in trial.pods_on(name)
            if each.namespace == constraint.namespace
            and not each.is_terminating
            and constraint.selector.matches(each.labels)
        )
    return found


def agrees(constraint: Constraint, trial: Trial) -> None:
    domains = by_domain(constraint, trial)
    sizes = [len(pods) for pods in domains.values()]
    least = min(sizes) if len(sizes) >= constraint.min_domains else 0
    assert constraint.skew(trial) == (max(sizes) - least if sizes else 0)
    largest = next((domains[n] for n in sorted(domains) if len(domains[n]) == max(sizes)), set())
    assert {each.key for each in constraint.most(trial)} == largest


@st.composite
def clusters(draw: st.DrawFn) -> list[KubeStruct]:
    found: list[KubeStruct] = []
    for i in range(draw(st.integers(1, 5))):
        zone = draw(st.sampled_from(["a", "b", ""]))
        pool = draw(st.sampled_from(["x", "y"]))
        found.append(node(f"n{i}", zone=zone, labels={"pool": pool}))
        for j in range(draw(st.integers(0, 4))):
            app = draw(st.sampled_from(["web", "db"]))
            labels = {"app": app, "tier": draw(st.sampled_from(["1", "2"]))}
            wanted = draw(st.sampled_from([{"app": app}, labels, {"tier": "1"}, {}]))
            where = draw(st.sampled_from([{}, {"pool": "x"}]))
            constraint = spread(draw(st.sampled_from(KEYS)), soft=True, selector=selector(wanted))
            found.append(
                pod(
                    f"{app}-{i}-{j}",
                    node=f"n{i}",
                    cpu="1",
                    ns=draw(st.sampled_from(["default", "other"])),
                    labels=labels,
                    owner=app,
                    node_selector=where,
                    spread=[constraint],
                    deleted="2026-01-01T00:00:00Z" if draw(st.integers(0, 9)) == 0 else None,
                )
            )
    return found


@settings(max_examples=40, deadline=None)
@given(clusters(), st.data())
def test_skew_is_that_of_a_look_at_all_pods(objects: list[KubeStruct], data: st.DataObject) -> None:
    trial = Trial(snapshot(*objects), IN_TREE)
    found = constraints(trial)
    running = [each for name in trial.nodes for each in trial.pods_on(name)]
    for _ in range(3):
        for each in found:
            agrees(each, trial)
        movable = [each for each in running if not each.is_terminating]
        if not movable:
            return
        victim = data.draw(st.sampled_from(movable))
        running.remove(victim)
        asyncio.run(trial.evict([victim], ()))
        for each in found:
            agrees(each, trial)
        if data.draw(st.booleans()):
            trial.keep()
        else:
            trial.take_back()


def test_pods_of_others_are_not_looked_at() -> None:
    mine = [PodInfo(pod(f"p{i}", labels={"app": "a", "tier": "1"})) for i in range(3)]
    others = [PodInfo(pod(f"o{i}", labels={"app": "b", "tier": "1"})) for i in range(50)]
    elsewhere = [PodInfo(pod("e", ns="other", labels={"app": "a"}))]
    index = LabelledPods([*mine, *others, *elsewhere])
    wanted = compile_selector(selector({"app": "a", "tier": "1"}))
    assert sorted(index.candidates("default", wanted)) == [each.key for each in mine]
    assert len(list(index.candidates("default", compile_selector(selector({}))))) == 53
