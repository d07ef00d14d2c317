"""What the containers of a pod see: their files, their environment, and what serves in them.

Everything is made from the pod as the API has it, and from the ConfigMaps and Secrets that it
names. Nothing is kept when the process of the kubelets ends.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from random import Random
from typing import Any, Final

from berth.cluster.kubelet.processes.agnhost import static
from berth.cluster.kubelet.processes.files import Files, Volume
from berth.cluster.kubelet.processes.images import KNOWN, image_of, is_understood
from berth.cluster.kubelet.processes.process import Log, Process
from berth.cluster.kubelet.processes.shell import HttpAnswer, HttpRequest, Input, Server, Shell
from berth.cluster.resources import Object
from berth.kube.objects.quantity import NANO, parse

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIELDS: Final = ("initContainers", "containers", "ephemeralContainers")
TERMINATION_LOG: Final = "/dev/termination-log"
LONGEST_MESSAGE: Final = 4096
"""Characters of the termination message, and 80 lines if it is taken from the log."""


class Volumes:
    """What outlives pods: the files of nodes, and of claims. By node, and by claim."""

    def __init__(self) -> None:
        self.nodes: dict[str, Volume] = {}
        self.claims: dict[str, Volume] = {}


class PodSandbox:
    """What the containers of one pod have in common."""

    def __init__(
        self, pod: Object, *, pod_ip: str, host_ip: str, volumes: Volumes, rng: Random
    ) -> None:
        """*pod* may lack its addresses, which are given beside."""
        self.pod = pod
        self.objects: dict[tuple[str, str], Object | None] = dict.fromkeys(_references(pod))
        """ConfigMaps and Secrets, by plural and name; None for those that are not there."""
        self._addresses = {
            "status.podIP": pod_ip,
            "status.podIPs": pod_ip,
            "status.hostIP": host_ip,
        }
        self._volumes = volumes
        self._rng = rng
        self._made: dict[str, tuple[Volume, str]] = {}

    def volume(self, name: str) -> tuple[Volume, str]:
        """Return a volume of the pod, and the path in it."""
        if name not in self._made:
            source = next(v for v in self.pod["spec"].get("volumes") or [] if v["name"] == name)
            self._made[name] = self._make(source)
        return self._made[name]

    def _make(self, source: Object) -> tuple[Volume, str]:
        spec, namespace = self.pod["spec"], self.pod["metadata"]["namespace"]
        if host := source.get("hostPath"):
            node = self._volumes.nodes.setdefault(spec.get("nodeName", ""), Volume())
            return node, host["path"].strip("/")
        claim = (source.get("persistentVolumeClaim") or {}).get("claimName")
        if "ephemeral" in source:
            claim = f"{self.pod['metadata']['name']}-{source['name']}"
        if claim:
            return self._volumes.claims.setdefault(f"{namespace}/{claim}", Volume()), ""
        return Volume(self._projected(source)), ""

    def _projected(self, source: Object) -> dict[str, str]:
        """Return the files of a ConfigMap, a Secret, the downward API, or several of them."""
        files: dict[str, str] = {}
        for part in (source.get("projected") or {}).get("sources") or []:
            files |= self._projected(part)
        for plural, kind in (("configmaps", "configMap"), ("secrets", "secret")):
            if told := source.get(kind):
                data = self.data(plural, told.get("secretName") or told.get("name", ""))
                items = told.get("items")
                chosen = (
                    {item["key"]: item["path"] for item in items} if items else {k: k for k in data}
                )
                files |= {path: data[key] for key, path in chosen.items() if key in data}
        for item in (source.get("downwardAPI") or {}).get("items") or []:
            files[item["path"]] = self.field(item, None)
        return files

    def data(self, plural: str, name: str) -> dict[str, str]:
        """Return the data of a ConfigMap or a Secret, as text."""
        obj = self.objects.get((plural, name)) or {}
        encoded = {
            **(obj.get("binaryData") or {}),
            **(obj.get("data") or {} if plural == "secrets" else {}),
        }
        data = {
            key: base64.b64decode(text).decode("utf-8", "replace") for key, text in encoded.items()
        }
        return data | ({} if plural == "secrets" else obj.get("data") or {})

    def field(self, source: Object, container: Object | None) -> str:
        """Return what a ``fieldRef`` or a ``resourceFieldRef`` of *source* means."""
        if ref := source.get("resourceFieldRef"):
            named = ref.get("containerName")
            container = self.container(named) if named else container
            kind, _, resource = ref["resource"].partition(".")
            amounts = ((container or {}).get("resources") or {}).get(kind) or {}
            divisor = parse(ref.get("divisor") or 0) or NANO
            return str(ceil(parse(amounts.get(resource, 0)) / divisor))
        path = (source.get("fieldRef") or {}).get("fieldPath", "")
        if path in self._addresses:
            return self._addresses[path]
        keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        metadata = self.pod["metadata"]
        if keyed:
            return str((metadata.get(keyed[1]) or {}).get(keyed[2], ""))
        if path in ("metadata.labels", "metadata.annotations"):
            items = sorted((metadata.get(path.partition(".")[2]) or {}).items())
            return "".join(f'{key}="{value}"\n' for key, value in items)
        value: Any = self.pod
        for name in path.split("."):
            value = value.get(name, "") if isinstance(value, dict) else ""
        return str(value)

    def container(self, name: str) -> Object:
        for fields in FIELDS:
            for container in self.pod["spec"].get(fields) or []:
                if container["name"] == name:
                    return dict(container)
        raise KeyError(name)

    def sandbox(self, name: str) -> "Sandbox":
        """Return a fresh sandbox for a start of a container."""
        return Sandbox(self, self.container(name), self._rng)


class Sandbox:
    """What one container sees from its start to its end; ``log`` is what it has written."""

    def __init__(self, pod: PodSandbox, container: Object, rng: Random) -> None:
        self.log = Log()
        self.process: Process | None = None
        """What runs, if that is known."""
        self._container = container
        self._rng = rng
        self._image = image_of(container.get("image", ""))
        self._servers: dict[int, Server] = {}
        spec, name = pod.pod["spec"], pod.pod["metadata"]["name"]
        hostname = (
            spec.get("nodeName") if spec.get("hostNetwork") else spec.get("hostname") or name[:63]
        )
        self._variables = {"PATH": PATH, "HOSTNAME": str(hostname), "HOME": "/root"}
        self._variables |= dict(_environment(pod, container, self._variables))
        root = Volume({**self._image.files, "etc/hostname": f"{hostname}\n"})
        for folder in (
            "tmp",
            "dev",
            "root",
            "bin",
            "var",
            container.get("workingDir", "/").strip("/"),
        ):
            root.make_folder(folder)
        mounts = {}
        for mount in container.get("volumeMounts") or []:
            volume, below = pod.volume(mount["name"])
            inner = mount.get("subPath") or expanded(mount.get("subPathExpr", ""), self._variables)
            mounts[mount["mountPath"]] = (volume, "/".join(part for part in (below, inner) if part))
        self.files = Files(root, mounts)
        if self._image.document_root:
            self._servers[80] = static(self._shell(), self._image.document_root)

    def start(self, words: tuple[str, ...], now: float) -> Process:
        """Start what the container runs; what it writes is logged."""
        stdin = Input(is_open=bool(self._container.get("stdin")))
        given = [expanded(word, self._variables) for word in words]
        self.process = self._process(given, now, self.log.write, self.log.write, stdin)
        return self.process

    def execute(
        self,
        words: list[str],
        now: float,
        *,
        out: Callable[[str], None],
        err: Callable[[str], None],
        stdin: Input,
    ) -> Process:
        """Start another command in the container."""
        return self._process(
            words, now, lambda _, text: out(text), lambda _, text: err(text), stdin
        )

    def _process(
        self,
        words: list[str],
        now: float,
        out: Callable[[float, str], None],
        err: Callable[[float, str], None],
        stdin: Input,
    ) -> Process:
        return Process(self._shell(), words, now, out=out, err=err, stdin=stdin)

    def listens(self, port: int) -> bool:
        return port in self._servers

    def answer(self, port: int, request: HttpRequest) -> HttpAnswer | None:
        """Answer a request to a port; None: nothing listens there."""
        server = self._servers.get(port)
        return None if server is None else server(request)

    def passes(self, probe_field: str, now: float) -> bool:
        """Tell whether a probe of the container passes; what is not understood passes."""
        probe = self._container.get(probe_field) or {}
        command = (probe.get("exec") or {}).get("command")
        if command and is_understood(command):

            def drop(_text: str) -> None: ...

            process = self.execute(command, now, out=drop, err=drop, stdin=Input())
            process.advance(now)
            return process.exit_code == 0
        http = probe.get("httpGet")
        if http:
            named = {
                port.get("name"): port["containerPort"]
                for port in self._container.get("ports") or []
            }
            port = named.get(http["port"], http["port"])
            answer = self.answer(int(port), HttpRequest("GET", http.get("path", "/"), {}))
            return answer is None or 200 <= answer.code < 400
        return True

    def termination_message(self, exit_code: int) -> str:
        """Return what the container says of its end."""
        path = self._container.get("terminationMessagePath") or TERMINATION_LOG
        text = self.files.read(path) if self.files.is_there(path) else ""
        policy = self._container.get("terminationMessagePolicy")
        if not text and exit_code and policy == "FallbackToLogsOnError":
            text = "".join(f"{line.text}\n" for line in list(self.log.lines)[-80:])
        return text[-LONGEST_MESSAGE:]

    def _shell(self) -> Shell:
        return Shell(
            self.files,
            KNOWN,
            lambda: 0.0,
            self._rng,
            dict(self._variables),
            set(self._variables),
            folder=f"/{self._container.get('workingDir', '/').strip('/')}",
            servers=self._servers,
        )


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Expand ``$(NAME)``, as in commands, arguments and values; ``$$`` stands for ``$``."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)", value, text)


def _environment(
    pod: PodSandbox, container: Object, given: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the variables of a container, the later ones win."""
    known = dict(given)
    for source in container.get("envFrom") or []:
        for plural, kind in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
            if ref := source.get(kind):
                for key, value in sorted(pod.data(plural, ref.get("name", "")).items()):
                    known[source.get("prefix", "") + key] = value
    yield from known.items()
    for variable in container.get("env") or []:
        source = variable.get("valueFrom")
        if not source:
            value = expanded(variable.get("value") or "", known)
        elif "fieldRef" in source or "resourceFieldRef" in source:
            value = pod.field(source, container)
        else:
            plural, ref = (
                ("configmaps", source["configMapKeyRef"])
                if "configMapKeyRef" in source
                else ("secrets", source.get("secretKeyRef") or {})
            )
            data = pod.data(plural, ref.get("name", ""))
            if ref.get("key") not in data:
                continue
            value = data[ref["key"]]
        known[variable["name"]] = value
        yield variable["name"], value


def _references(pod: Object) -> Iterator[tuple[str, str]]:
    """Yield the ConfigMaps and Secrets that a pod names, but for the access to the API."""
    spec = pod["spec"]
    for fields in FIELDS:
        for container in spec.get(fields) or []:
            sources = [*(container.get("envFrom") or [])]
            sources += [each.get("valueFrom") or {} for each in container.get("env") or []]
            for source in sources:
                for kind in ("configMapRef", "configMapKeyRef"):
                    if kind in source:
                        yield "configmaps", source[kind].get("name", "")
                for kind in ("secretRef", "secretKeyRef"):
                    if kind in source:
                        yield "secrets", source[kind].get("name", "")
    for volume in spec.get("volumes") or []:
        if volume["name"].startswith("kube-api-access-"):
            continue
        for source in (volume, *((volume.get("projected") or {}).get("sources") or [])):
            if "configMap" in source:
                yield "configmaps", source["configMap"].get("name", "")
            if "secret" in source:
                yield (
                    "secrets",
                    source["secret"].get("secretName") or source["secret"].get("name", ""),
                )
