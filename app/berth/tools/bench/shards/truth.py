"""What the API says came of it: who is where, who has what, and what of that must not be.

It follows the API alone, each kind in the order of its versions, and uses nothing of a scheduler.
What pods require, their labels ``kind`` and ``app`` tell (see :mod:`.workload`).
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from berth.cluster.in_process_api import InProcessApi
from berth.runtime.clock import Clock
from berth.tools.bench.shards.workload import MIN_COUNT, RESTRICTED, node_of_volume
from berth.tools.bench.shards.world import NODE_CPU, NODE_PODS

Object = dict[str, Any]

DEVICE_CLAIMS: Final = "/apis/resource.k8s.io/v1/resourceclaims"
VOLUME_CLAIMS: Final = "/api/v1/persistentvolumeclaims"


class Seen(msgspec.Struct, frozen=True):
    """A pod, as it was seen last."""

    key: str
    uid: str
    namespace: str
    labels: Mapping[str, str]
    node: str
    cpu: int
    """In milli-cores."""
    volume_claim: str
    device_claim: str
    """Their keys; "" if it has none."""
    group: str
    since: float
    """When it was created, by the clock of :class:`Truth`."""

    @property
    def app(self) -> str:
        return self.labels["app"]

    @property
    def kind(self) -> str:
        return self.labels["kind"]


class Truth:
    """All pods and claims, while :meth:`run` follows them."""

    def __init__(self, api: InProcessApi, clock: Clock, zones: Mapping[str, str]) -> None:
        """*zones* are those of all nodes, by name."""
        self._api = api
        self._clock = clock
        self._zones = zones
        self._all_zones = set(zones.values())
        self.pods: dict[str, Seen] = {}
        """By namespace/name."""
        self.broken: list[str] = []
        """What has happened that no single scheduler would have done."""
        self.on_bound: Callable[[Seen, float], None] = lambda _pod, _waited: None
        """Told of a pod that has got a node, and after how many seconds."""
        self.on_gone: Callable[[Seen], None] = lambda _pod: None
        self.bound = 0
        self.cpu = 0
        """What all pods request, in milli-cores."""
        self.devices_given = 0
        self.volumes_given = 0
        self._on_node: Counter[str] = Counter()
        self._cpu: Counter[str] = Counter()
        self._firm_cpu: Counter[str] = Counter()
        """By node, what pods request that are not evicted."""
        self._apps: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """By app, how many of its pods are on a node and in a zone."""
        self._unbound: Counter[str] = Counter()
        """By app, how many of its pods have no node."""
        self._restricted: Counter[tuple[str, str]] = Counter()
        """By app and node, how many pods are there that no other may be beside."""
        self._groups: Counter[str] = Counter()
        """By group, how many pods it has."""
        self._users: dict[str, str] = {}
        """By key of a volume claim, the pod that has a node and uses it."""
        self._device_owner: dict[tuple[str, str, str], str] = {}
        self._devices: dict[str, list[tuple[str, str, str]]] = {}
        """By key of a claim, the devices that it has, or had last."""
        self._volume_owner: dict[str, str] = {}
        self._volumes: dict[str, str] = {}
        """By key of a claim, the volume that it is bound to."""

    @property
    def waiting(self) -> list[Seen]:
        """The pods without a node that there is one for."""
        return [pod for pod in self.pods.values() if not pod.node and self._may_go(pod)]

    def _may_go(self, pod: Seen) -> bool:
        """Whether the volume of *pod*, if it has one, is not in use, and where there is room or
        somebody to evict."""
        if pod.volume_claim in self._users:
            return False
        node = node_of_volume(self._volumes.get(pod.volume_claim, ""))
        return not node or self._firm_cpu[node] + pod.cpu <= NODE_CPU

    async def run(self) -> None:
        """Follow the API, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for path, told in (
                ("/api/v1/pods", self.saw_pod),
                (DEVICE_CLAIMS, self.saw_device_claim),
                (VOLUME_CLAIMS, self.saw_volume_claim),
            ):
                tasks.create_task(self._follow(path, told), name=f"truth {path}")

    async def _follow(self, path: str, told: Callable[[str, Object], None]) -> None:
        listed = msgspec.json.decode(await self._api.request("GET", path))
        for item in listed["items"]:
            told("ADDED", item)
        version = listed["metadata"]["resourceVersion"]
        while True:
            async for line in self._api.watch(path, {"resourceVersion": version}):
                if line:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"{path}: {event['object']}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        told(event["type"], event["object"])

    # Pods

    def saw_pod(self, what: str, pod: Object) -> None:
        """Take note of an event of a watch: *what* is its type."""
        key = _key(pod)
        old = self.pods.get(key)
        if what == "DELETED":
            if old is not None:
                del self.pods[key]
                self._left(old)
                self.on_gone(old)
            return
        now = self._clock.monotonic()
        new = _seen(key, pod, now if old is None else old.since)
        self.pods[key] = new
        if old is None:
            self.cpu += new.cpu
            self._unbound[new.app] += 1
            self._groups[new.group] += bool(new.group)
        if new.node and (old is None or not old.node):
            self._came(new)
            self.on_bound(new, now - new.since)
        elif old is not None and old.node != new.node:
            self.broken.append(f"{key} went from {old.node} to {new.node}")

    def _came(self, pod: Seen) -> None:
        """Note that *pod* has a node, and what that breaks."""
        self.bound += 1
        self._unbound[pod.app] -= 1
        node, zone, app = pod.node, self._zones[pod.node], self._apps[pod.app]
        self._on_node[node] += 1
        self._cpu[node] += pod.cpu
        if pod.kind != "plain":
            self._firm_cpu[node] += pod.cpu
        app[node] += 1
        app[zone] += 1
        if self._on_node[node] > NODE_PODS or self._cpu[node] > NODE_CPU:
            self._break(pod, f"{node} has {self._on_node[node]} pods, {self._cpu[node]} m")
        if pod.kind == "apart":
            self._restricted[pod.app, node] += RESTRICTED in pod.labels
            if self._restricted[pod.app, node] and app[node] > 1:
                self._break(pod, f"is beside another on {node}")
        if pod.kind == "spread" and not self._unbound[pod.app]:
            # once nothing is on its way: binds may arrive in another order than they were decided
            counts = {zone: app[zone] for zone in self._all_zones}
            if max(counts.values()) - min(counts.values()) > 1:
                self._break(pod, f"makes {counts}")
        if pod.kind == "together" and sum(app[zone] > 0 for zone in self._all_zones) > 1:
            self._break(pod, "is in another zone than the others")
        if pod.group and self._groups[pod.group] < int(pod.labels[MIN_COUNT]):
            self._break(pod, f"is one of {self._groups[pod.group]} in its group")
        if pod.volume_claim:
            other = self._users.setdefault(pod.volume_claim, pod.key)
            if other != pod.key:
                self._break(pod, f"has the ReadWriteOncePod volume of {other}")

    def _left(self, pod: Seen) -> None:
        """Note that *pod* is gone, and look whether it had what is on its node: by now that is
        known, whatever came first."""
        self.cpu -= pod.cpu
        self._groups[pod.group] -= bool(pod.group)
        if not pod.node:
            self._unbound[pod.app] -= 1
            return
        app = self._apps[pod.app]
        self._on_node[pod.node] -= 1
        self._cpu[pod.node] -= pod.cpu
        if pod.kind != "plain":
            self._firm_cpu[pod.node] -= pod.cpu
        for place in (pod.node, self._zones[pod.node]):
            app[place] -= 1
        if not any(app.values()):
            del self._apps[pod.app], self._unbound[pod.app]
        if RESTRICTED in pod.labels:
            self._restricted[pod.app, pod.node] -= 1
        if self._users.get(pod.volume_claim) == pod.key:
            del self._users[pod.volume_claim]
        self.look_at_claims(pod)

    def look_at_claims(self, pod: Seen) -> None:
        """Look whether volume and devices of *pod* are on its node."""
        if pod.volume_claim and node_of_volume(self._volumes.get(pod.volume_claim, "")) != pod.node:
            self._break(pod, f"{pod.node} has not {self._volumes.get(pod.volume_claim)}")
        if pod.device_claim:
            pools = {pool for _, pool, _ in self._devices.get(pod.device_claim, [])}
            if pools != {pod.node}:
                self._break(pod, f"{pod.node} has not the devices of {pools}")

    def volume_of(self, claim: str) -> str:
        """Return the volume that a claim is bound to, by its key; "" if there is none."""
        return self._volumes.get(claim, "")

    def _break(self, pod: Seen, what: str) -> None:
        self.broken.append(f"{pod.key} {what}")

    # Claims

    def saw_device_claim(self, what: str, claim: Object) -> None:
        key = _key(claim)
        allocation = claim.get("status", {}).get("allocation")
        for device in self._devices.get(key, ()):
            if self._device_owner.get(device) == key:
                del self._device_owner[device]
        if what == "DELETED" or allocation is None:
            return
        had = self._devices.get(key)
        self._devices[key] = devices = [
            (result["driver"], result["pool"], result["device"])
            for result in allocation["devices"]["results"]
        ]
        self.devices_given += had != devices
        for device in devices:
            other = self._device_owner.setdefault(device, key)
            if other != key:
                self.broken.append(f"{device} is given to {key} and {other}")

    def saw_volume_claim(self, what: str, claim: Object) -> None:
        key, volume = _key(claim), claim["spec"].get("volumeName", "")
        if what == "DELETED":
            if self._volume_owner.get(volume) == key:
                del self._volume_owner[volume]
        elif volume:
            self.volumes_given += key not in self._volumes
            self._volumes[key] = volume
            other = self._volume_owner.setdefault(volume, key)
            if other != key:
                self.broken.append(f"{volume} is given to {key} and {other}")


def _key(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def _seen(key: str, pod: Object, since: float) -> Seen:
    metadata, spec = pod["metadata"], pod["spec"]
    namespace = metadata["namespace"]
    volumes = [v["persistentVolumeClaim"]["claimName"] for v in spec.get("volumes", ())
               if "persistentVolumeClaim" in v]  # fmt: skip
    claims = [claim["resourceClaimName"] for claim in spec.get("resourceClaims", ())]
    group = spec.get("schedulingGroup", {}).get("podGroupName", "")
    requests = [c["resources"]["requests"]["cpu"] for c in spec["containers"]]
    return Seen(
        key=key,
        uid=metadata["uid"],
        namespace=namespace,
        labels=metadata["labels"],
        node=spec.get("nodeName", ""),
        cpu=sum(_milli(text) for text in requests),
        volume_claim=f"{namespace}/{volumes[0]}" if volumes else "",
        device_claim=f"{namespace}/{claims[0]}" if claims else "",
        group=f"{namespace}/{group}" if group else "",
        since=since,
    )


def _milli(cpu: str) -> int:
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else 1000 * int(cpu)
