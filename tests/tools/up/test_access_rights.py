"""The parts of ``berth up`` keep to the rights that they have on a real cluster."""

import random
from collections import defaultdict
from pathlib import Path

import pytest

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import Decision
from berth.cluster.access.users import CONTROLLER_MANAGER, KUBELETS, SCHEDULER, User
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.node_template import NodePool
from berth.runtime.clock import RealClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.tools.up.kubeconfig_out import KubeconfigOut
from berth.tools.up.up import Up, UpOptions
from berth_plugins.registry import IN_TREE

pytestmark = pytest.mark.wall


async def test_nobody_is_refused_anything(tmp_path: Path) -> None:
    refused: list[tuple[str, Attributes]] = []
    used: dict[str, set[tuple[str, str]]] = defaultdict(set)

    def observe(user: User, wanted: Attributes, decision: Decision) -> None:
        if not decision.allowed:
            refused.append((user.name, wanted))
        used[user.name].add((wanted.verb, wanted.full_resource))

    clock, rng = RealClock(), random.Random(1)
    up = Up(
        UpOptions(
            [NodePool(20)],
            sample=True,
            kubeconfig=KubeconfigOut(tmp_path / "kubeconfig"),
            exit_when_idle=True,
        ),
        default_configuration(args_models(IN_TREE)),
        EmbeddedCluster(clock=clock, rng=rng, observer=observe),
        clock=clock,
        rng=rng,
        say=lambda _line: None,
    )
    await up.run()

    assert refused == []
    assert ("create", "pods/binding") in used[SCHEDULER.name]
    assert ("create", "nodes") in used[KUBELETS.name]
    assert ("patch", "pods/status") in used[KUBELETS.name]
    assert ("create", "pods") in used[CONTROLLER_MANAGER.name]
    assert ("escalate", "clusterroles") in used[CONTROLLER_MANAGER.name]
