"""The chart on nodes that run containers: two replicas, an upgrade, a rollback, the end.

The API server is a container of the image, as is the default scheduler, which places the chart's
own pods; the nodes are those of :mod:`tests.containers.kubelet`. Where helm is installed, it does
what a person does by it; elsewhere kubectl does, with what the chart renders.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from berth.cluster.install_order import place
from berth.kube.client.connect import connect
from tests.containers.docker import DockerError, docker, inspect, run
from tests.containers.kubelet import API_HOST, API_PORT, DockerKubelet
from tests.helm.rendering import CHART, HELM, NAMESPACE, RELEASE, Object, Values, render

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.wall, pytest.mark.timeout(1800)]

LIMIT_SECONDS = 90
NAME = f"{RELEASE}-berth"
HOOK = "helm.sh/hook"
CREDENTIALS = "/var/lib/berth/credentials"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def values(image: str) -> Values:
    repository, _, tag = image.rpartition(":")
    return {"image": {"repository": repository, "tag": tag}}


def of_release(image: str) -> list[Object]:
    """Return what an installation creates, in its order: all but the hooks."""
    objects = render(values(image))
    return sorted(
        (obj for obj in objects if HOOK not in obj["metadata"].get("annotations", {})), key=place
    )


class Nodes:
    """A cluster whose pods are containers. Made by :func:`nodes`."""

    def __init__(self, kubeconfig: Path, kubelets: list[DockerKubelet], *, url: str) -> None:
        self.kubelets = kubelets
        self._kubectl = ("kubectl", f"--kubeconfig={kubeconfig}", f"--server={url}")
        server = (f"--kubeconfig={kubeconfig}", f"--kube-apiserver={url}")
        self._helm = (HELM or "", *server, f"--namespace={NAMESPACE}")

    async def helm(self, *arguments: str, text: str | None = None) -> str:
        return await asyncio.to_thread(run, *self._helm, *arguments, text=text, seconds=150)

    async def kubectl(self, *arguments: str, text: str | None = None) -> str:
        return await asyncio.to_thread(run, *self._kubectl, *arguments, text=text, seconds=150)

    async def apply(self, objects: list[Object]) -> None:
        await self.kubectl("apply", "-f-", text=yaml.safe_dump_all(objects))

    async def upgrade(self, image: str) -> None:
        """Install the chart with *image*, or let its release have that."""
        if HELM:
            text = yaml.safe_dump(values(image))
            await self.helm("upgrade", "--install", RELEASE, str(CHART), "--values=-", text=text)
        else:
            await self.apply(of_release(image))

    async def roll_back(self, image: str) -> None:
        """Return to the release before, which had *image*."""
        if HELM:
            await self.helm("rollback", RELEASE)
        else:
            await self.apply(of_release(image))

    async def uninstall(self, image: str) -> None:
        if HELM:
            await self.helm("uninstall", RELEASE)
        else:
            text = yaml.safe_dump_all(of_release(image))
            await self.kubectl("delete", "-f-", text=text)

    async def pods(self, namespace: str) -> dict[str, Object]:
        """Return the pods of *namespace* by name, without those that are to go."""
        answer = json.loads(await self.kubectl("get", "pods", f"-n{namespace}", "-ojson"))
        return {
            pod["metadata"]["name"]: pod
            for pod in answer["items"]
            if "deletionTimestamp" not in pod["metadata"]
        }

    async def leader(self) -> str:
        """Return the pod that holds the Lease; "" if there is none."""
        holder = await self.kubectl(
            "get", "lease", NAME, f"-n{NAMESPACE}", "-ojsonpath={.spec.holderIdentity}"
        )
        return holder.rpartition("_")[0]

    async def rolled_out(self) -> None:
        await self.kubectl(
            "rollout", "status", f"deployment/{NAME}", f"-n{NAMESPACE}", "--timeout=90s"
        )

    async def until_bound(self, *names: str) -> None:
        """Create pods for the release's scheduler, and wait until they run."""
        await self.apply([workload(name) for name in names])
        await self.kubectl(
            "wait", "--for=condition=Ready", "--timeout=100s", *(f"pod/{name}" for name in names)
        )

    async def show(self, label: str) -> None:
        """Print what a failed test leaves behind."""
        for what in (("get", "nodes,pods,replicasets", "-A", "-owide"), ("get", "events", "-A")):
            print(await self.kubectl(*what))  # noqa: T201 - pytest shows it with the failure
        for name in docker("ps", "-aq", f"--filter=label={label}").split():
            print(inspect(name)["Name"], docker_logs(name))  # noqa: T201 - the same

    @property
    def exits(self) -> dict[str, int]:
        return {name: code for kubelet in self.kubelets for name, code in kubelet.exits.items()}


def container_of(pod: str, *, namespace: str = NAMESPACE) -> str:
    return f"k8s_{namespace}_{pod}"


def workload(name: str) -> Object:
    """A pod for the scheduler of the release; its container sleeps."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "berth",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "sleep", "image": "berth-test-sleep", "command": ["sleep", "3600"],
                    "resources": {"requests": {"cpu": "50m"}},
                }
            ],
        },
    }  # fmt: skip


async def until(look: Callable[[], Awaitable[bool]], said: str) -> None:
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            while not await look():  # noqa: ASYNC110 - what is looked at is elsewhere
                await asyncio.sleep(0.5)
    except TimeoutError:
        pytest.fail(said)


@asynccontextmanager
async def nodes(image: str, folder: Path) -> AsyncIterator[Nodes]:
    """Run an API server, a default scheduler and two nodes, each pod of which is a container."""
    name = f"berth-test-{uuid4().hex[:8]}"
    label = f"berth-test={name}"
    common = ("--detach", f"--label={label}", f"--network={name}", "--no-healthcheck")
    async with AsyncExitStack() as cleanup:
        docker("network", "create", name)
        cleanup.callback(docker, "network", "rm", name)
        docker("tag", image, "berth-test-sleep")
        cleanup.callback(docker, "rmi", "berth-test-sleep")
        cleanup.callback(remove_containers, label)
        api_server = docker(
            "run", *common, f"--network-alias={API_HOST}", f"--publish=127.0.0.1::{API_PORT}",
            image, "cluster", "--bind-address=0.0.0.0", f"--port={API_PORT}",
            f"--tls-san={API_HOST}", "--kubeconfig-out=/var/lib/berth/admin/kubeconfig",
            f"--credentials-dir={CREDENTIALS}",
        )  # fmt: skip
        kubeconfig = folder / "kubeconfig"
        health = ("berth", "health", f"--url=https://127.0.0.1:{API_PORT}/readyz")
        await until(lambda: answers(api_server, *health), "the API server does not come up")
        docker("cp", f"{api_server}:/var/lib/berth/admin/kubeconfig", str(kubeconfig))
        docker("cp", f"{api_server}:{CREDENTIALS}/scheduler", str(folder))
        (folder / "scheduler").chmod(0o755)  # it is another user's in the container
        (folder / "scheduler/kubeconfig").chmod(0o644)
        docker(
            "run", *common, f"--volume={folder / 'scheduler'}:{CREDENTIALS}/scheduler:ro",
            image, "run", f"--kubeconfig={CREDENTIALS}/scheduler/kubeconfig",
            f"--master=https://{API_HOST}:{API_PORT}",
        )  # fmt: skip
        port = docker("port", api_server, str(API_PORT)).rpartition(":")[2]
        url = f"https://127.0.0.1:{port}"
        api = await connect(kubeconfig=str(kubeconfig), master=url, qps=0)
        cleanup.push_async_callback(api.close)
        kubelets = [
            DockerKubelet(api, node, network=name, label=label, home=folder / node)
            for node in ("node-a", "node-b")
        ]
        cluster = Nodes(kubeconfig, kubelets, url=url)
        # One that breaks ends the test, too.
        group = await cleanup.enter_async_context(asyncio.TaskGroup())
        tasks = [group.create_task(kubelet.run()) for kubelet in kubelets]
        try:
            yield cluster
        except BaseException:
            await cluster.show(label)
            raise
        for task in tasks:
            task.cancel()


def docker_logs(name: str) -> str:
    """Return the last lines of a container, of both of its streams."""
    return run("sh", "-c", f"docker logs --tail=20 {name} 2>&1")


def remove_containers(label: str) -> None:
    left = docker("ps", "--all", "--quiet", f"--filter=label={label}").split()
    if left:
        docker("rm", "--force", "--volumes", *left)


async def answers(name: str, *command: str) -> bool:
    try:
        await asyncio.to_thread(docker, "exec", name, *command)
    except DockerError:
        assert inspect(name)["State"]["Running"], docker("logs", name)
        return False
    return True


async def test_from_installation_to_removal(image: str, next_image: str, tmp_path: Path) -> None:
    """One story, for each step needs the cluster that the one before left."""
    async with nodes(image, tmp_path) as cluster:
        await installed(cluster, image)
        await contexts_are_in_force(cluster)
        await passes_the_chart_s_own_test(cluster, image)
        await restarted_by_its_kubelet(cluster)
        await moved_to(cluster, next_image, cluster.upgrade)
        await moved_to(cluster, image, cluster.roll_back)
        await removed(cluster, image)


async def installed(cluster: Nodes, image: str) -> None:
    namespace = {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": RESTRICTED},
    }  # fmt: skip
    await cluster.apply([namespace])
    await cluster.upgrade(image)
    await cluster.rolled_out()
    pods = await cluster.pods(NAMESPACE)
    assert len(pods) == 2
    assert {pod["spec"]["nodeName"] for pod in pods.values()} == {"node-a", "node-b"}  # spread
    assert await cluster.leader() in pods
    await cluster.until_bound(*(f"first-{number}" for number in range(4)))


async def contexts_are_in_force(cluster: Nodes) -> None:
    for name in await cluster.pods(NAMESPACE):
        container = container_of(name)
        host = inspect(container)["HostConfig"]
        assert host["ReadonlyRootfs"]
        assert host["CapDrop"] == ["ALL"]
        assert host["Memory"] == 2 * 1024**3
        assert host["CpuShares"] == 256
        with pytest.raises(DockerError, match="Read-only file system"):
            docker("exec", container, "touch", "/var/lib/berth/file")
        token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
        said = docker("exec", container, "sh", "-c", f"id -u; test -s {token} && echo token")
        assert said.split() == ["65532", "token"]


async def passes_the_chart_s_own_test(cluster: Nodes, image: str) -> None:
    """Run the pod of `helm test`, which finds the release by the name of its Service."""
    if HELM:
        assert "Succeeded" in await cluster.helm("test", RELEASE, "--timeout=60s")
        return
    [pod] = [
        obj
        for obj in render(values(image))
        if obj["metadata"].get("annotations", {}).get(HOOK) == "test"
    ]
    name = pod["metadata"]["name"]
    await cluster.apply([pod])
    await cluster.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", f"-n{NAMESPACE}",
        "--timeout=60s",
    )  # fmt: skip
    await cluster.kubectl("delete", f"pod/{name}", f"-n{NAMESPACE}")


async def restarted_by_its_kubelet(cluster: Nodes) -> None:
    """Kill the leader: the standby takes over, and its container comes back as a standby."""
    leader = await cluster.leader()
    docker("kill", container_of(leader))
    await cluster.until_bound("after-the-leader")
    assert await cluster.leader() not in ("", leader)

    async def is_back() -> bool:
        [status] = (await cluster.pods(NAMESPACE))[leader]["status"]["containerStatuses"]
        return bool(status["ready"]) and status["restartCount"] == 1

    await until(is_back, "the killed container does not come back")


async def moved_to(cluster: Nodes, image: str, move: Callable[[str], Awaitable[None]]) -> None:
    """Let the release have *image* while pods keep coming; none of them stays unscheduled."""
    before = set(await cluster.pods(NAMESPACE))
    name = move.__name__.replace("_", "-")
    await move(image)
    rolling = asyncio.create_task(cluster.rolled_out())
    count = 0
    while not rolling.done() or count < 3:
        ready = [pod for pod in (await cluster.pods(NAMESPACE)).values() if is_ready(pod)]
        assert len(ready) >= 2, "fewer are ready than the chart has replicas"
        await cluster.until_bound(f"{name}-{count}")
        count += 1
    await rolling
    pods = await cluster.pods(NAMESPACE)
    assert not before & set(pods)
    assert {pod["spec"]["containers"][0]["image"] for pod in pods.values()} == {image}

    async def is_gone() -> bool:
        return before <= set(cluster.exits)

    await until(is_gone, "former pods do not end")
    assert {cluster.exits[pod] for pod in before} == {0}  # asked to end, they did, in time
    assert await cluster.leader() in pods


def is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


async def removed(cluster: Nodes, image: str) -> None:
    """What the chart made goes, and pods that run stay."""
    await cluster.uninstall(image)

    async def is_empty() -> bool:
        return not json.loads(await cluster.kubectl("get", "pods", f"-n{NAMESPACE}", "-ojson"))[
            "items"
        ]

    await until(is_empty, "pods of the chart stay")
    phases = {name: pod["status"]["phase"] for name, pod in (await cluster.pods("default")).items()}
    assert set(phases.values()) == {"Running"}
