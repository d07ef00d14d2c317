"""Creates the objects of manifests; rejected objects are reported and skipped."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec

from berth.cluster import install_order
from berth.cluster.sources import Gathered
from berth.kube.client.api import Api
from berth.kube.client.discovery import Discovery, UnknownKindError
from berth.kube.client.errors import AlreadyExistsError, ApiError, NotFoundError
from berth.kube.manifests import Manifest
from berth.runtime.clock import Clock

DEFAULT_NAMESPACE: Final = "default"

NAMESPACES: Final = "/api/v1/namespaces"
ACCOUNT: Final = "serviceaccounts/default"
"""Below a namespace: what its pods need, and a controller makes."""
API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices/"
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

READY_SECONDS: Final = 10.0
"""How long objects are waited for that others need."""
LOOK_SECONDS: Final = 0.02

KINDS_PAGE: Final = "docs/reference/embedded-api.md"
FEATURES_PAGE: Final = "docs/embedded.md"

WORKLOADS: Final = frozenset(
    (
        "Pod", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet",
        "Job", "CronJob",
    )
)  # fmt: skip
"""Kinds of pods, and of what makes pods."""


@dataclass(slots=True)
class Refused:
    """How much was not accepted."""

    objects: int = 0
    workloads: int = 0
    """Those of :data:`WORKLOADS` among them: their pods are missing."""
    files: int = 0
    """Files that could not be read to the end: it is not known what is missing."""

    @property
    def lacks_pods(self) -> bool:
        return bool(self.workloads or self.files)

    def lines(self) -> list[str]:
        """Tell it in lines for people."""
        lines = []
        if self.objects:
            lines.append(f"{self.objects} objects refused, {self.workloads} of them with pods")
        if self.files:
            lines.append(f"{self.files} files not read")
        return lines


class Loader:
    """Creates objects through *client*. *say* prints a line for people.

    Objects that do not say their namespace go to *namespace*, which is created. In a cluster that
    was there before (*is_kept*), so may be the objects: they are left as they are.
    """

    def __init__(
        self,
        client: Api,
        *,
        clock: Clock,
        say: Callable[[str], None],
        namespace: str = DEFAULT_NAMESPACE,
        is_kept: bool = False,
    ) -> None:
        self._client = client
        self._clock = clock
        self._say = say
        self._namespace = namespace
        self._is_kept = is_kept
        self._discovery = Discovery(client)
        self._created: dict[str, None] = {}
        """Paths of objects."""
        self._existing = 0
        self.refused = Refused()

    async def load(self, gathered: Gathered) -> None:
        """Create what was gathered, one by one: first what the other objects need."""
        for problem in gathered.problems:
            self.refused.files += 1
            self._say(f"not loaded: {problem}")
        objects = sorted(gathered.objects, key=lambda each: install_order.place(each[1]))
        if objects:
            await self._make_namespace([obj for _, obj in objects])
        for kind, group in groupby(objects, key=lambda each: str(each[1]["kind"])):
            of_kind = list(group)
            if kind == "Pod":
                spaces = {_metadata(obj).get("namespace") or self._namespace for _, obj in of_kind}
                await self._until_there(f"{NAMESPACES}/{space}/{ACCOUNT}" for space in spaces)
            for source, obj in of_kind:
                await self._create(source, obj)
            if kind == "CustomResourceDefinition":
                await self._until_there(
                    (path for path in self._created if path.startswith(DEFINITIONS)),
                    is_ready=_is_established,
                )
        if self._existing:
            self._say(f"{self._existing} objects exist; to change them, use kubectl apply")
        if self.refused.objects:
            self._say(f"{FEATURES_PAGE} explains what the cluster supports")

    async def _make_namespace(self, objects: Iterable[Manifest]) -> None:
        """Make sure that there is the namespace of objects that do not say theirs."""
        name = self._namespace
        is_coming = any(
            obj["kind"] == "Namespace" and _metadata(obj).get("name") == name for obj in objects
        )
        if not is_coming and name != DEFAULT_NAMESPACE:
            with suppress(AlreadyExistsError):
                await self._post(NAMESPACES, {"metadata": {"name": name}})

    async def _create(self, source: str, obj: Manifest) -> None:
        path = ""
        try:
            collection = await self._discovery.collection_of(obj, namespace=self._namespace)
            path = f"{collection}/{_metadata(obj).get('name', '')}"
            await self._post(collection, obj)
        except AlreadyExistsError as exc:
            if self._is_kept and path not in self._created:
                self._existing += 1
            elif not await self._is_the_clusters_own(path):
                self._refuse(source, obj, exc.message)
        except UnknownKindError as exc:
            self._refuse(source, obj, f"{exc}; {KINDS_PAGE} lists what is served")
        except ApiError as exc:
            self._refuse(source, obj, exc.message)
        else:
            self._created[path] = None

    async def _is_the_clusters_own(self, path: str) -> bool:
        """Whether an APIService is of a group that the cluster serves itself, such as metrics."""
        if not path.startswith(API_SERVICES):
            return False
        found = msgspec.json.decode(await self._client.request("GET", path))
        return AUTOMANAGED in (_metadata(found).get("labels") or {})

    async def _post(self, collection: str, obj: Manifest) -> None:
        body = msgspec.json.encode(obj)
        params = {"fieldValidation": "Strict"}
        await self._client.request("POST", collection, params=params, body=body)

    def _refuse(self, source: str, obj: Manifest, why: str) -> None:
        self.refused.objects += 1
        self.refused.workloads += obj["kind"] in WORKLOADS
        name = _metadata(obj).get("name", "")
        self._say(f"not loaded: {source}: {obj['kind']} {name!r}: {why}")

    async def _until_there(
        self, paths: Iterable[str], *, is_ready: Callable[[Any], bool] = lambda _obj: True
    ) -> None:
        """Wait for objects that others depend on; if they do not come, those will say so."""
        end = self._clock.monotonic() + READY_SECONDS
        for path in list(paths):
            while self._clock.monotonic() < end:
                with suppress(NotFoundError):
                    if is_ready(msgspec.json.decode(await self._client.request("GET", path))):
                        break
                await self._clock.sleep(LOOK_SECONDS)


def _metadata(obj: Manifest) -> dict[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _is_established(definition: Any) -> bool:
    """Whether the kinds of a CustomResourceDefinition are served, or never will be."""
    conditions = (definition.get("status") or {}).get("conditions") or []
    found = {condition.get("type"): condition.get("status") for condition in conditions}
    return found.get("Established") == "True" or found.get("NamesAccepted") == "False"
