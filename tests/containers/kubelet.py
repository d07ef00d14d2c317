"""A small kubelet over the docker engine: a node whose pods are containers, as their specs say.

It does of a kubelet's work what the chart relies on: security contexts, volumes of ConfigMaps,
Secrets and tokens, resources, HTTP probes, restarts, graceful ends. Pods of several containers,
init containers and other volumes are refused.
"""

import asyncio
import base64
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.errors import ApiError
from berth.kube.objects.quantity import milli_value, parse, value
from tests.containers.docker import DockerError

LOG: Final = logging.getLogger(__name__)

Object = dict[str, Any]

API_HOST: Final = "kubernetes.default.svc"
API_PORT: Final = 6443
"""Where containers reach the API server."""

SYNC_SECONDS: Final = 0.3
LEASE_SECONDS: Final = 5.0
RESTART_SECONDS: Final = 1.0
"""Time between two looks at pods, two renewals of the node's Lease, an exit and the next start."""

MERGE: Final = "application/merge-patch+json"
PLAIN_MODE: Final = 0o644


class Refused(Exception):  # noqa: N818 - not an error of this program
    """The pod asks for what a kubelet refuses, or this one has not."""


@dataclass
class Life:
    """A pod of the node, while it has one."""

    pod: Object
    container: str = ""
    address: str = ""
    ready: bool = False
    restarts: int = 0
    leaving: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def path(self) -> str:
        meta = self.pod["metadata"]
        return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def security(pod: Object, container: Object) -> list[str]:
    """Return what a security context is as flags of `docker create`. Raises Refused."""
    whole = pod["spec"].get("securityContext") or {}
    context = {**whole, **(container.get("securityContext") or {})}
    flags = []
    user = context.get("runAsUser")
    if context.get("runAsNonRoot") and not user:
        raise Refused("runAsNonRoot, and no runAsUser says who it is")
    if user is not None:
        flags.append(f"--user={user}:{context.get('runAsGroup', 0)}")
    if "fsGroup" in whole:
        flags.append(f"--group-add={whole['fsGroup']}")
    if context.get("readOnlyRootFilesystem"):
        flags.append("--read-only")
    if context.get("allowPrivilegeEscalation") is False:
        flags.append("--security-opt=no-new-privileges")
    capabilities = context.get("capabilities") or {}
    flags += [f"--cap-drop={name}" for name in capabilities.get("drop") or ()]
    flags += [f"--cap-add={name}" for name in capabilities.get("add") or ()]
    profile = (context.get("seccompProfile") or {}).get("type", "Unconfined")
    if profile == "Unconfined":
        flags.append("--security-opt=seccomp=unconfined")
    elif profile != "RuntimeDefault":  # the engine's own is what it does unasked
        raise Refused(f"seccompProfile {profile}")
    return flags


def resources(container: Object) -> list[str]:
    """Return the requests and limits that a kubelet gives to a container's cgroup."""
    wanted = container.get("resources") or {}
    flags = []
    if cpu := (wanted.get("requests") or {}).get("cpu"):
        flags.append(f"--cpu-shares={max(2, milli_value(parse(cpu)) * 1024 // 1000)}")
    limits = wanted.get("limits") or {}
    if cpu := limits.get("cpu"):
        flags.append(f"--cpus={milli_value(parse(cpu)) / 1000}")
    if memory := limits.get("memory"):
        flags.append(f"--memory={value(parse(memory))}")
    return flags


def environment(pod: Object, container: Object) -> dict[str, str]:
    """Return the variables of a container, with the way to the API server. Raises Refused."""
    known = {"KUBERNETES_SERVICE_HOST": API_HOST, "KUBERNETES_SERVICE_PORT": str(API_PORT)}
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source is None:
            known[variable["name"]] = expanded(variable.get("value", ""), known)
        elif source.get("fieldRef", {}).get("fieldPath") == "metadata.name":
            known[variable["name"]] = pod["metadata"]["name"]
        else:
            raise Refused(f"env {variable['name']}: {source}")
    return known


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Return *text* with ``$(NAME)`` of known variables replaced, as in commands and values."""
    return re.sub(r"\$\(([\w.-]+)\)", lambda match: known.get(match[1], match[0]), text)


class Volumes:
    """The volumes of one pod, in folders below *home*."""

    def __init__(self, api: ApiClient, pod: Object, home: Path) -> None:
        self._api = api
        self._pod = pod
        self._home = home
        self._group = (pod["spec"].get("securityContext") or {}).get("fsGroup")

    async def mounts(self, container: Object) -> list[str]:
        """Make what *container* mounts; return flags. Raises Refused and ApiError."""
        volumes = {volume["name"]: volume for volume in self._pod["spec"].get("volumes") or ()}
        flags = []
        for mount in container.get("volumeMounts") or ():
            volume, target = volumes[mount["name"]], mount["mountPath"]
            empty = volume.get("emptyDir")
            if empty is not None and empty.get("medium") == "Memory":
                size = value(parse(empty.get("sizeLimit", "64Mi")))
                flags.append(f"--tmpfs={target}:mode=1777,size={size}")
                continue
            folder = self._home / volume["name"]
            folder.mkdir(mode=0o755, exist_ok=True)
            if empty is not None:
                self._give(folder, 0o2777)
            else:
                await self._fill(folder, volume)
            flags.append(f"--volume={folder}:{target}{':ro' if mount.get('readOnly') else ''}")
        return flags

    async def _fill(self, folder: Path, volume: Object) -> None:
        source = volume.get("projected")
        parts = [volume] if source is None else source["sources"]
        whole = source or volume.get("configMap") or volume.get("secret") or {}
        mode = whole.get("defaultMode", PLAIN_MODE)
        for part in parts:
            for name, content in (await self._content(part)).items():
                path = folder / name
                path.write_bytes(content)
                self._give(path, mode)

    async def _content(self, part: Object) -> dict[str, bytes]:
        """Return the files of a volume's source."""
        meta = self._pod["metadata"]
        namespace = f"/api/v1/namespaces/{meta['namespace']}"
        if token := part.get("serviceAccountToken"):
            account = self._pod["spec"]["serviceAccountName"]
            bound = {
                "apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"],
            }  # fmt: skip
            wanted = {"expirationSeconds": token["expirationSeconds"], "boundObjectRef": bound}
            path = f"{namespace}/serviceaccounts/{account}/token"
            body = msgspec.json.encode({"spec": wanted})
            answer = msgspec.json.decode(await self._api.request("POST", path, body=body))
            return {token["path"]: answer["status"]["token"].encode()}
        if items := (part.get("downwardAPI") or {}).get("items"):
            fields = {"metadata.namespace": meta["namespace"], "metadata.name": meta["name"]}
            return {each["path"]: fields[each["fieldRef"]["fieldPath"]].encode() for each in items}
        if named := part.get("configMap"):
            got = await self._api.request("GET", f"{namespace}/configmaps/{named['name']}")
            data = {name: text.encode() for name, text in msgspec.json.decode(got)["data"].items()}
        elif named := part.get("secret"):
            name = named.get("secretName") or named["name"]
            got = await self._api.request("GET", f"{namespace}/secrets/{name}")
            data = {
                name: base64.b64decode(text)
                for name, text in msgspec.json.decode(got)["data"].items()
            }
        else:
            raise Refused(f"volume {part}")
        items = named.get("items")
        return data if items is None else {each["path"]: data[each["key"]] for each in items}

    def _give(self, path: Path, mode: int) -> None:
        """Let the group of the pod's volumes read *path*, as a kubelet does where it has one."""
        if self._group is None:
            path.chmod(mode)
            return
        os.chown(path, -1, self._group)
        path.chmod(mode | 0o440)


class DockerKubelet:
    """The node *name*. Its containers are on *network* and have the label *label*."""

    def __init__(self, api: ApiClient, name: str, *, network: str, label: str, home: Path) -> None:
        self._api = api
        self._name = name
        self._network = network
        self._label = label
        self._home = home
        home.mkdir()
        self._lives: dict[str, Life] = {}
        self.exits: dict[str, int] = {}
        """By pod, what its container ended with."""
        self._http = httpx.AsyncClient(verify=False)

    async def run(self) -> None:
        """Register the node and keep its pods, until it is cancelled."""
        await self._register()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._renew())
                while True:
                    for pod in await self._pods():
                        uid = pod["metadata"]["uid"]
                        life = self._lives.get(uid)
                        if life is None:
                            life = self._lives[uid] = Life(pod)
                            group.create_task(self._keep(uid, life))
                        if "deletionTimestamp" in pod["metadata"]:
                            life.pod = pod
                            life.leaving.set()
                    await asyncio.sleep(SYNC_SECONDS)
        finally:
            await self._http.aclose()

    async def _register(self) -> None:
        meta = {"name": self._name, "labels": {"kubernetes.io/hostname": self._name}}
        await self._ask("POST", "/api/v1/nodes", {"metadata": meta})
        amounts = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "50Gi"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        await self._ask("PATCH", f"/api/v1/nodes/{self._name}/status", {"status": status})

    async def _renew(self) -> None:
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec: Object = {"holderIdentity": self._name, "leaseDurationSeconds": 40}
        await self._ask("POST", leases, {"metadata": {"name": self._name}, "spec": spec})
        while True:
            await asyncio.sleep(LEASE_SECONDS)
            spec["renewTime"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
            try:
                await self._ask("PATCH", f"{leases}/{self._name}", {"spec": spec})
            except ApiError as exc:
                LOG.warning("%s: %s", self._name, exc)

    async def _pods(self) -> list[Object]:
        """Return the pods of the node; none while the API server cannot say."""
        selected = {"fieldSelector": f"spec.nodeName={self._name}"}
        try:
            answer = await self._api.request("GET", "/api/v1/pods", params=selected)
        except ApiError as exc:
            LOG.warning("%s: %s", self._name, exc)
            return []
        items: list[Object] = msgspec.json.decode(answer)["items"]
        return items

    async def _ask(self, method: str, path: str, body: Object) -> None:
        kind = MERGE if method == "PATCH" else "application/json"
        encoded = msgspec.json.encode(body)
        await self._api.request(method, path, body=encoded, content_type=kind)

    # -- One pod.

    async def _keep(self, uid: str, life: Life) -> None:
        """Start the pod's container and see it through, to its end or that of the pod."""
        try:
            while not life.leaving.is_set():
                try:
                    await self._start(life)
                    await self._see_through(life)
                except (
                    ApiError,
                    DockerError,
                ) as exc:  # a kubelet tries again, with a new container
                    LOG.warning("%s: %s", life.path, exc)
                    await self._remove(life)
                    await asyncio.sleep(RESTART_SECONDS)
        except Refused as exc:
            await self._report(life, "Failed", message=str(exc))
            await life.leaving.wait()
        finally:
            await self._remove(life)
        with suppress(ApiError):
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            await self._ask("DELETE", life.path, body)

    async def _start(self, life: Life) -> None:
        pod = life.pod
        if pod["spec"].get("initContainers") or len(pod["spec"]["containers"]) != 1:
            raise Refused("not a pod of one container")
        [container] = pod["spec"]["containers"]
        home = self._home / pod["metadata"]["uid"]
        home.mkdir(mode=0o755, exist_ok=True)
        known = environment(pod, container)
        flags = [
            f"--name=k8s_{pod['metadata']['namespace']}_{pod['metadata']['name']}",
            f"--hostname={pod['metadata']['name']}",
            f"--label={self._label}",
            f"--network={self._network}",
            "--no-healthcheck",  # a kubelet has its own
            *security(pod, container),
            *resources(container),
            *(f"--env={name}={value}" for name, value in known.items()),
            *await Volumes(self._api, pod, home).mounts(container),
            *(f"--network-alias={host}" for host in await self._services(pod)),
        ]
        words = [expanded(word, known) for word in container.get("args") or ()]
        if command := container.get("command"):
            flags.append(f"--entrypoint={command[0]}")
            words = [*command[1:], *words]
        life.container = await _docker("run", "--detach", *flags, container["image"], *words)
        await self._found(life)

    async def _found(self, life: Life) -> None:
        """Note where the container is, which another start may change."""
        template = f'{{{{(index .NetworkSettings.Networks "{self._network}").IPAddress}}}}'
        life.address = await _docker("inspect", f"--format={template}", life.container)

    async def _services(self, pod: Object) -> list[str]:
        """Return the host names of the Services that select *pod*: the engine resolves them."""
        namespace = pod["metadata"]["namespace"]
        answer = await self._api.request("GET", f"/api/v1/namespaces/{namespace}/services")
        labels = pod["metadata"].get("labels", {}).items()
        return [
            f"{each['metadata']['name']}.{namespace}.svc"
            for each in msgspec.json.decode(answer)["items"]
            if each["spec"].get("selector") and each["spec"]["selector"].items() <= labels
        ]

    async def _see_through(self, life: Life) -> None:
        """Probe and restart, until the pod is to go, or its container has ended for good."""
        [container] = life.pod["spec"]["containers"]
        restarts = life.pod["spec"].get("restartPolicy", "Always") == "Always"
        while True:
            probing = asyncio.create_task(self._probe(life, container))
            exited = asyncio.create_task(_docker("wait", life.container))
            leaving = asyncio.create_task(life.leaving.wait())
            tasks = (probing, exited, leaving)
            try:
                await asyncio.wait(tasks[1:], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                probed, *_ = await asyncio.gather(*tasks, return_exceptions=True)
            if isinstance(probed, Exception):
                raise probed
            life.ready = False
            if life.leaving.is_set():
                return
            if not restarts:
                code = exited.result()
                await self._report(life, "Succeeded" if code == "0" else "Failed")
                await life.leaving.wait()
                return
            await self._report(life, "Running")
            await asyncio.sleep(RESTART_SECONDS)
            await _docker("start", life.container)
            await self._found(life)
            life.restarts += 1

    async def _probe(self, life: Life, container: Object) -> None:
        """Report whether the container is ready; end it when its liveness probe says so."""
        life.ready = "readinessProbe" not in container
        await self._report(life, "Running")
        if startup := container.get("startupProbe"):
            for _ in range(startup.get("failureThreshold", 3)):
                if await self._answers(life, container, startup):
                    break
                await asyncio.sleep(startup.get("periodSeconds", 10))
            else:
                await self._kill(life)
                return
        async with asyncio.TaskGroup() as group:
            for kind in ("livenessProbe", "readinessProbe"):
                if probe := container.get(kind):
                    group.create_task(self._repeat(life, container, probe, kind))

    async def _repeat(self, life: Life, container: Object, probe: Object, kind: str) -> None:
        failures = 0
        while True:
            failures = 0 if await self._answers(life, container, probe) else failures + 1
            is_failed = failures >= probe.get("failureThreshold", 3)
            if kind == "livenessProbe":
                if is_failed:
                    await self._kill(life)
                    return
            elif life.ready is not (failures == 0) and (failures == 0 or is_failed):
                life.ready = failures == 0
                await self._report(life, "Running")
            await asyncio.sleep(probe.get("periodSeconds", 10))

    async def _kill(self, life: Life) -> None:
        LOG.warning("%s: a probe failed too often", life.path)
        with suppress(DockerError):  # it may have ended by itself
            await _docker("kill", life.container)

    async def _answers(self, life: Life, container: Object, probe: Object) -> bool:
        """Return whether a probe succeeds: a status from 200 up to 399."""
        get = probe["httpGet"]
        ports = {port.get("name"): port["containerPort"] for port in container["ports"]}
        port = ports.get(get["port"], get["port"])
        url = f"{get.get('scheme', 'HTTP').lower()}://{life.address}:{port}{get['path']}"
        try:
            answer = await self._http.get(url, timeout=probe.get("timeoutSeconds", 1))
        except (httpx.HTTPError, httpx.InvalidURL):  # also while it has no address
            return False
        return answer.status_code < 400

    async def _report(self, life: Life, phase: str, *, message: str = "") -> None:
        """Write the pod's status; the pod may be gone."""
        [container] = life.pod["spec"]["containers"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        is_ready = phase == "Running" and life.ready
        state = (
            {"running": {"startedAt": now}}
            if phase == "Running"
            else {"terminated": {"exitCode": int(phase == "Failed"), "reason": phase}}
        )
        status = {
            "phase": phase,
            "message": message or None,
            "podIP": life.address or None,
            "startTime": now,
            "conditions": [
                {"type": kind, "status": str(value), "lastTransitionTime": now}
                for kind, value in (
                    ("PodScheduled", True), ("Initialized", True),
                    ("ContainersReady", is_ready), ("Ready", is_ready),
                )
            ],
            "containerStatuses": [
                {
                    "name": container["name"], "image": container["image"], "imageID": "",
                    "containerID": f"docker://{life.container}", "ready": is_ready,
                    "restartCount": life.restarts, "state": state,
                }
            ],
        }  # fmt: skip
        with suppress(ApiError):
            await self._ask("PATCH", f"{life.path}/status", {"status": status})

    async def _remove(self, life: Life) -> None:
        """End the container with the pod's grace, and remove it."""
        if not life.container:
            return
        meta, spec = life.pod["metadata"], life.pod["spec"]
        grace = meta.get("deletionGracePeriodSeconds", spec["terminationGracePeriodSeconds"])
        with suppress(DockerError):
            await _docker("stop", f"--time={grace}", life.container)
        code = await _docker("inspect", "--format={{.State.ExitCode}}", life.container)
        self.exits[meta["name"]] = int(code)
        await _docker("rm", "--force", life.container)
        life.container = ""


async def _docker(*arguments: str) -> str:
    """Return what ``docker`` writes; it ends with the task. Raises DockerError."""
    process = await asyncio.create_subprocess_exec(
        "docker", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise DockerError(f"docker {' '.join(arguments)}: {err.decode()}")
    return out.decode().strip()
