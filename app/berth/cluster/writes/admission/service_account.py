"""ServiceAccount: every pod runs as one, and finds a token of it in its containers."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType, section
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.cluster.writes.identities import Identities
from berth.runtime.clock import Clock

DEFAULT: Final = "default"
TOKEN_VOLUME: Final = "kube-api-access-"
TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS: Final = 3607
"""An hour, and seven seconds that tell a token made for a pod from one that somebody asked for."""

MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of pods that a kubelet made by itself, and only shows."""

PATIENCE: Final = 1.5
INTERVAL: Final = 0.05
"""Seconds that a pod waits for the default account of a new namespace, and between two looks."""

PODS = find("", "v1", "pods").storage_key
ACCOUNTS = find("", "v1", "serviceaccounts").storage_key


class ServiceAccount(Step):
    """Leaves pods whose default account is yet to be made to :class:`AwaitServiceAccount`."""

    def __init__(self, store: Store, *, identities: Identities) -> None:
        self._store = store
        self._identities = identities
        self._read = lru_cache(maxsize=1_000)(Stored.decode)

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        return operation is Operation.CREATE and not subresource and resource.storage_key == PODS

    def admit(self, request: AdmissionRequest) -> None:
        """Give the pod its account, a token and the account's secrets for pulling images."""
        pod = request.object
        if pod is None or _is_mirror(pod):
            return
        spec = section(pod, "spec")
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self.find(request.namespace, name)
        if account is not None:
            self.give(pod, account)
        elif name != DEFAULT:
            raise _unknown(request, name)

    def validate(self, request: AdmissionRequest) -> None:
        """Refuse what a pod of a kubelet cannot have: the kubelet reads no objects for it."""
        pod = request.object
        if pod is None or not _is_mirror(pod):
            return
        spec = pod.get("spec") or {}
        if spec.get("serviceAccountName"):
            raise forbidden(request, "a mirror pod may not reference service accounts")
        if any(volume.get("secret") for volume in spec.get("volumes") or ()):
            raise forbidden(request, "a mirror pod may not reference secrets")

    def find(self, namespace: str, name: str) -> Object | None:
        """Return the account of that name, if it is there; it is shared, and not to be changed."""
        try:
            return self._read(self._store.get(ACCOUNTS, namespace, name))
        except NotFoundError:
            return None

    def knows(self, namespace: str, name: str) -> bool:
        """Tell whether the account is there."""
        try:
            self._store.get(ACCOUNTS, namespace, name)
        except NotFoundError:
            return False
        return True

    def give(self, pod: Object, account: Object) -> None:
        """Give a pod what its account has for it."""
        spec = pod["spec"]
        wanted = spec.get("automountServiceAccountToken")
        if wanted is None:
            wanted = account.get("automountServiceAccountToken")
        if wanted is not False:
            self._mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]

    def _mount_token(self, spec: Object) -> None:
        """Mount a token in every container that has nothing of its own in that place."""
        volumes = spec.get("volumes") or []
        there = (each["name"] for each in volumes if each.get("name", "").startswith(TOKEN_VOLUME))
        volume = next(there, "")
        name = volume or self._identities.name(TOKEN_VOLUME)
        is_needed = False
        for container in _containers(spec):
            mounts = container.get("volumeMounts") or []
            if not any(each.get("mountPath") == TOKEN_PATH for each in mounts):
                mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
                container["volumeMounts"] = [*mounts, mount]
                is_needed = True
        if is_needed and not volume:
            spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


class AwaitServiceAccount:
    """An async step: a pod waits for the default account of its namespace, if that is new."""

    def __init__(self, step: ServiceAccount, *, clock: Clock) -> None:
        self._step = step
        self._clock = clock

    def concerns(self, request: AdmissionRequest) -> bool:
        """Tell whether a pod has to wait."""
        if not self._step.handles(request.operation, request.resource, request.subresource):
            return False
        spec = (request.object or {}).get("spec") or {}
        is_default = spec.get("serviceAccountName") == DEFAULT
        return is_default and not self._step.knows(request.namespace, DEFAULT)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Wait for the account, which a controller makes."""
        until = self._clock.monotonic() + PATIENCE
        while (account := self._step.find(request.namespace, DEFAULT)) is None:
            if self._clock.monotonic() >= until:
                raise _unknown(request, DEFAULT)
            await self._clock.sleep(INTERVAL)
        if request.object is not None:
            self._step.give(request.object, account)

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse a pod whose account is gone again."""
        raise _unknown(request, DEFAULT)


def _is_mirror(pod: Object) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _token_source() -> Object:
    """Return what a pod needs to talk to the API server: a token, the authority, its namespace."""
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 0o644,
    }


def _unknown(request: AdmissionRequest, name: str) -> Exception:
    why = (
        f"error looking up service account {request.namespace}/{name}: "
        f'serviceaccount "{name}" not found'
    )
    return forbidden(request, why)
