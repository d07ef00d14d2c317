"""``docker compose up``: pods through it from outside, another leader, another release, the end."""

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.containers.compose import Project, installed, readable
from tests.containers.docker import DockerError, docker, inspect, run
from tests.containers.prometheus import Prometheus, moved, prometheus
from tests.packaging.test_compose import COMPOSE
from tests.packaging.test_monitoring import alerts, dashboard

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.wall, pytest.mark.timeout(1800)]

SCHEDULERS = ("scheduler-a", "scheduler-b")
PORTS = {"cluster": 6443, "scheduler-a": 10259, "scheduler-b": 10260}
LIMIT_SECONDS = 120
LEASE = ("get", "lease", "kube-scheduler", "-nkube-system", "-ojsonpath={.spec.holderIdentity}")

TOO_LARGE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "too-large"},
    "spec": {
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100000"}}}]
    },
}


def until(what: Callable[[], bool], said: str) -> None:
    """Look every half a second; fail with *said* after ``LIMIT_SECONDS``."""
    end = time.monotonic() + LIMIT_SECONDS
    while not what():
        assert time.monotonic() < end, said
        time.sleep(0.5)


class Cluster:
    """What somebody on this machine sees of the project, through the ports that it publishes."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self.kubeconfig = folder / "berth.kubeconfig"
        self.token = folder / "token"

    def fetch_credentials(self) -> None:
        """As the compose file says, by the command that each version of compose has."""
        name = self.project.container("cluster")
        for path, target in (
            ("admin/berth.kubeconfig", self.kubeconfig),
            ("credentials/monitoring/token", self.token),
        ):
            docker("cp", f"{name}:/var/lib/berth/{path}", str(target))

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        return run("kubectl", f"--kubeconfig={self.kubeconfig}", *arguments, text=text)

    def health(self, service: str) -> str:
        health: str = inspect(self.project.container(service))["State"]["Health"]["Status"]
        return health

    def until_healthy(self, *services: str) -> None:
        until(
            lambda: all(self.health(s) == "healthy" for s in services), f"{services} are not well"
        )

    def until_running(self, *pods: str) -> None:
        """Create *pods* and wait until kubelets run them."""
        manifests = [
            {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"containers": [{"name": "c", "image": "x"}]},
            }
            for name in pods
        ]  # fmt: skip
        self.kubectl("apply", "-f-", text=yaml.safe_dump_all(manifests))
        self.kubectl(
            "wait", "--for=jsonpath={.status.phase}=Running", "--timeout=50s",
            *(f"pod/{name}" for name in pods),
        )  # fmt: skip

    def leader(self) -> str:
        """Return the service whose container holds the Lease; "" if it is none of them."""
        holder = self.kubectl(*LEASE)
        for service in SCHEDULERS:
            host = inspect(self.project.container(service))["Config"]["Hostname"]
            if holder.startswith(host):
                return service
        return ""


@pytest.fixture(scope="module")
def cluster(clone: Path, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    compose = installed()
    if compose is None:
        pytest.skip("NO COMPOSE: neither `docker compose` nor `docker-compose` can be run")
    for port in PORTS.values():
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"PORT {port}, which the compose file publishes, is taken")
    project = Project(compose, clone, name="berth-test")
    project.use()
    made = Cluster(project, tmp_path_factory.mktemp("outside"))
    try:
        project("up", "--detach", "--no-build")
        made.until_healthy("cluster", *SCHEDULERS)
        made.fetch_credentials()
        yield made
    except BaseException:
        print(project("logs", "--tail=40"))  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        project("down", "--volumes", "--timeout=20")
    assert project.ended()


def test_twenty_nodes_and_pods_from_outside(cluster: Cluster) -> None:
    until(lambda: len(cluster.kubectl("get", "nodes", "-oname").split()) == 20, "nodes are missing")
    cluster.until_running(*(f"first-{number}" for number in range(30)))


def test_containers_are_as_hard_as_the_file_says(cluster: Cluster) -> None:
    for service in ("cluster", "kubelets", *SCHEDULERS):
        name = cluster.project.container(service)
        found = inspect(name)
        assert found["HostConfig"]["ReadonlyRootfs"], service
        assert found["HostConfig"]["CapDrop"] == ["ALL"], service
        assert found["RestartCount"] == 0, docker("logs", name)
        with pytest.raises(DockerError, match="Read-only file system"):
            docker("exec", name, "touch", "/var/lib/berth/file")


def test_each_has_the_credentials_that_it_needs_and_no_others(cluster: Cluster) -> None:
    for service, has in (("kubelets", ["kubelets"]), ("scheduler-a", ["scheduler"])):
        script = "cd /var/lib/berth && find . -type f"
        files = docker("exec", cluster.project.container(service), "sh", "-c", script).split()
        assert {Path(file).parent.name for file in files} == set(has), service


@pytest.fixture(scope="module")
def watched(
    cluster: Cluster, clone: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Prometheus as the compose file configures it, once it has seen both schedulers."""
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        pytest.skip("NO PROMETHEUS: its Debian package has `prometheus` and `promtool`")
    folder = tmp_path_factory.mktemp("prometheus")
    config = folder / "prometheus.yml"
    theirs = yaml.safe_load((clone / "compose/prometheus/prometheus.yml").read_bytes())
    published = {f"{name}:10259": f"127.0.0.1:{PORTS[name]}" for name in SCHEDULERS}
    here = moved(theirs, rules=clone / "helm/berth/rules", token=cluster.token, targets=published)
    config.write_text(yaml.safe_dump(here), encoding="utf-8")
    assert "SUCCESS" in run("promtool", "check", "config", str(config))
    with prometheus(config, folder) as made:
        until(lambda: len(made.series("up == 1")) == 2, "Prometheus cannot scrape both")
        yield made


def test_prometheus_evaluates_every_alert(watched: Prometheus) -> None:
    def rules() -> list[dict[str, str]]:
        return [rule for group in watched.get("rules")["groups"] for rule in group["rules"]]

    until(lambda: all(rule["health"] != "unknown" for rule in rules()), "rules are not evaluated")
    assert {rule["name"]: rule.get("lastError") for rule in rules()} == {
        alert["alert"]: None for alert in alerts()
    }
    # On a busy machine a leader may be late with its Lease: an alert is pending, and does not fire.
    alerting = watched.get("alerts")["alerts"]
    assert [alert["labels"] for alert in alerting if alert["state"] == "firing"] == []


QUIET = ("Extender", "Plugins that raise")
"""Panels of what does not happen here: no extender is configured, and no plugin raises."""


def test_every_panel_of_the_dashboard_has_series(cluster: Cluster, watched: Prometheus) -> None:
    expressions = [
        (panel["title"], target["expr"])
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
        if not panel["title"].startswith(QUIET)
    ]
    assert expressions
    replaced = {"$job": "berth", "$instance": ".+", "$__rate_interval": "1m"}
    for variable, value in replaced.items():
        expressions = [(title, text.replace(variable, value)) for title, text in expressions]
    # What no node takes waits, and is rejected by a plugin; what is scheduled meanwhile has a rate.
    cluster.kubectl("apply", "-f-", text=yaml.safe_dump(TOO_LARGE))
    cluster.until_running("watched")

    def empty() -> list[tuple[str, str]]:
        return [(title, text) for title, text in expressions if not watched.series(text)]

    until(lambda: not empty(), "panels are empty")
    cluster.kubectl("delete", "pod", TOO_LARGE["metadata"]["name"])


def test_the_other_takes_over_when_the_leader_is_killed(cluster: Cluster) -> None:
    until(lambda: cluster.leader() != "", "nobody leads")
    leader = cluster.leader()
    (standby,) = {*SCHEDULERS} - {leader}
    cluster.project("kill", leader)
    cluster.until_running("after-the-leader")
    assert cluster.leader() == standby
    cluster.project("up", "--detach", "--no-build", "--no-deps", leader)
    cluster.until_healthy(leader)


def test_schedulers_are_replaced_by_those_of_another_release(
    cluster: Cluster, next_image: str
) -> None:
    """One after the other, the standby first; the cluster keeps what it has."""
    until(lambda: cluster.leader() != "", "nobody leads")
    leader = cluster.leader()
    cluster.project.use(image=next_image)
    for number, service in enumerate(sorted(SCHEDULERS, key=lambda name: name == leader)):
        cluster.project("up", "--detach", "--no-build", "--no-deps", "--timeout=20", service)
        cluster.until_running(f"meanwhile-{number}")
        cluster.until_healthy(service)
        assert inspect(cluster.project.container(service))["Config"]["Image"] == next_image
    cluster.until_running("after-the-upgrade")
    phases = cluster.kubectl("get", "pods", "-ojsonpath={.items[*].status.phase}").split()
    assert set(phases) == {"Running"}


def test_a_scheduler_ends_by_itself_when_it_is_stopped(cluster: Cluster) -> None:
    name = cluster.project.container("scheduler-b")
    docker("stop", "--time=20", name)
    assert inspect(name)["State"]["ExitCode"] == 0, docker("logs", "--tail=40", name)
    docker("start", name)
    cluster.until_healthy("scheduler-b")


@pytest.mark.parametrize(
    ("compose", "api", "gone"),
    [
        pytest.param((2, 40), (1, 44), set[str](), id="Compose 2 and engine 25: as it is"),
        pytest.param((2, 26), (1, 41), {"start_interval"}, id="engine 20.10"),
        pytest.param((1, 29), (1, 41), {"start_interval", "restart", "name"}, id="Compose 1.29"),
    ],
)
def test_what_older_ones_cannot_read(
    compose: tuple[int, ...], api: tuple[int, ...], gone: set[str]
) -> None:
    made = readable(COMPOSE, compose=compose, api=api)
    cluster = made["services"]["cluster"]
    after = made["services"]["scheduler-a"]["depends_on"]["cluster"]
    kept = {*cluster["healthcheck"], *after, *made}
    assert {"start_interval", "restart", "name"} - kept == gone
