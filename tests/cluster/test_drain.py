"""Three nodes of a running shop are drained: every pod moves, and no budget is ever violated.

``pytest -s tests/cluster/test_drain.py`` prints what happened when.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from berth.cluster.resources import Object

NEEDED = {"web": 5, "cart": 3, "db": 2}
"""By app: how many pods have to be ready at any time."""
DRAINED = ("node-0", "node-1", "node-2")

SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: web}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 5, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart}
spec:
  replicas: 4
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: cart}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: cart}
spec: {maxUnavailable: 25%, selector: {matchLabels: {app: cart}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: db}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {minAvailable: 60%, selector: {matchLabels: {app: db}}}
"""


class Seen(NamedTuple):
    """An event of a watch on pods, and when it came."""

    at: float
    type: str
    pod: Object


@dataclass
class Watched:
    """What the events of one watch tell, in their order."""

    needed: Mapping[str, int]
    healthy: dict[str, str] = field(default_factory=dict)
    """The app of each healthy pod, by uid."""
    violations: list[str] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)
    going: set[str] = field(default_factory=set)

    def follow(self, events: Iterable[Seen], *, start: float) -> None:
        for at, type_, pod in events:
            meta, app = pod["metadata"], pod["metadata"]["labels"]["app"]
            node = pod["spec"].get("nodeName", "")
            conditions = pod["status"].get("conditions") or []
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            is_going = "deletionTimestamp" in meta
            if ready and not is_going and type_ != "DELETED":
                self.healthy[meta["uid"]] = app
            elif self.healthy.pop(meta["uid"], None):
                left = sum(each == app for each in self.healthy.values())
                if left < self.needed[app]:
                    self.violations.append(f"{app}: {left} of {self.needed[app]}")
            if is_going and meta["uid"] not in self.going:
                self.going.add(meta["uid"])
                left = sum(each == app for each in self.healthy.values())
                self.moves.append(
                    f"{at - start:6.2f} s  {meta['name']} leaves {node}; "
                    f"{left} of {app} are ready, {self.needed[app]} are needed"
                )


def pod(name: str, *, ready: bool = True, going: bool = False) -> Object:
    meta: Object = {"name": name, "uid": name, "labels": {"app": "web"}}
    if going:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ready_condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "metadata": meta,
        "spec": {"nodeName": "n"},
        "status": {"conditions": [ready_condition]},
    }


@pytest.mark.parametrize(
    ("events", "violations"),
    [
        pytest.param([("MODIFIED", pod("a", going=True))], 0, id="one goes"),
        pytest.param(
            [("MODIFIED", pod("a", going=True)), ("MODIFIED", pod("b", going=True))],
            1,
            id="two go at once",
        ),
        pytest.param(
            [
                ("MODIFIED", pod("a", going=True)),
                ("ADDED", pod("d", ready=False)),
                ("MODIFIED", pod("b", going=True)),
            ],
            1,
            id="the second goes before another is ready",
        ),
        pytest.param(
            [
                ("MODIFIED", pod("a", going=True)),
                ("ADDED", pod("d")),
                ("MODIFIED", pod("b", going=True)),
                ("DELETED", pod("a", going=True)),
            ],
            0,
            id="the second goes when another is ready",
        ),
    ],
)
def test_violations_are_seen(events: list[tuple[str, Object]], violations: int) -> None:
    watched = Watched({"web": 2})
    first = [("ADDED", pod(name)) for name in "abc"]
    watched.follow((Seen(0.0, *event) for event in (*first, *events)), start=0.0)
    assert len(watched.violations) == violations


def kubectl(environment: Mapping[str, str], *arguments: str, stdin: str = "") -> str:
    """Run kubectl, which must succeed, and return what it prints."""
    ended = subprocess.run(
        ["kubectl", *arguments],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A cluster of six nodes with a scheduler."""
    kubeconfig = tmp_path / "kubeconfig"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "berth", "up", "--nodes", "6", "--port", "0"),
            *("--debug-port", "0", "--kubeconfig-out", str(kubeconfig)),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not kubeconfig.exists():
            assert process.poll() is None, "the cluster has ended"
            assert time.monotonic() < deadline, "the cluster does not start"
            time.sleep(0.1)
        yield {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def watching(environment: Mapping[str, str], seen: list[Seen]) -> Iterator[None]:
    """Collect the events of all pods in *seen*, as the API server sends them."""
    arguments = ["get", "--raw", "/api/v1/namespaces/default/pods?watch=true"]
    with subprocess.Popen(
        ["kubectl", *arguments], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        watcher = threading.Thread(target=read_events, args=(process.stdout, seen))
        watcher.start()
        try:
            yield
        finally:
            process.terminate()
            watcher.join(timeout=30)


def read_events(lines: Iterable[str], seen: list[Seen]) -> None:
    for line in lines:
        event: Any = json.loads(line)
        seen.append(Seen(time.monotonic(), event["type"], event["object"]))


@pytest.mark.wall
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_three_nodes_of_a_shop(environment: dict[str, str]) -> None:
    kubectl(environment, "wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
    kubectl(environment, "apply", "-f", "-", stdin=SHOP)
    for workload in ("deployment/web", "deployment/cart", "statefulset/db"):
        kubectl(environment, "rollout", "status", workload, "--timeout=60s")
    for budget, allowed in (("web", 1), ("cart", 1), ("db", 1)):
        path = f"jsonpath={{.status.disruptionsAllowed}}={allowed}"
        kubectl(environment, "wait", f"pdb/{budget}", f"--for={path}", "--timeout=60s")

    seen: list[Seen] = []
    with watching(environment, seen):
        deadline = time.monotonic() + 60
        while len(seen) < 13:
            assert time.monotonic() < deadline, f"{len(seen)} events"
            time.sleep(0.05)
        on_drained = {
            each.pod["metadata"]["uid"]
            for each in seen
            if each.pod["spec"].get("nodeName") in DRAINED
        }
        start = time.monotonic()
        said = kubectl(environment, "drain", *DRAINED, "--timeout=200s")
        seconds = time.monotonic() - start
        for workload in ("deployment/web", "deployment/cart", "statefulset/db"):
            kubectl(environment, "rollout", "status", workload, "--timeout=60s")

    watched = Watched(NEEDED)
    watched.follow(seen, start=start)
    print(f"drained {len(DRAINED)} nodes in {seconds:.1f} s", *watched.moves, sep="\n")  # noqa: T201
    assert [line for line in said.splitlines() if line.endswith("drained")] == [
        f"node/{name} drained" for name in DRAINED
    ]
    assert watched.violations == []
    assert on_drained
    assert on_drained <= watched.going, "some pods of these nodes have not moved"
    pods = json.loads(kubectl(environment, "get", "pods", "-o", "json"))["items"]
    assert len(pods) == 13
    assert not {each["spec"]["nodeName"] for each in pods} & set(DRAINED)
