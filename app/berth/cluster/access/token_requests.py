"""TokenRequests: the subresource ``token`` of service accounts."""

from collections.abc import Callable, Sequence
from typing import Final

from berth.cluster import errors
from berth.cluster.access.service_account_tokens import (
    API_AUDIENCE,
    BOUND,
    Bound,
    ServiceAccountTokens,
)
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.runtime.clock import Clock, rfc3339

DEFAULT_SECONDS: Final = 3600
LEAST_SECONDS: Final = 600
MOST_SECONDS: Final = 2**32

MOST_AUDIENCES_TEXT: Final = 4 * 1024
"""Characters of all audiences of a token. A real server has no such limit, but its clients: the
token must fit into a header."""

RESOURCE: Final = ResourceType(
    group="authentication.k8s.io",
    version="v1",
    kind="TokenRequest",
    plural="tokenrequests",
    singular="tokenrequest",
    namespaced=True,
    schema=builtin.schema("io.k8s.api.authentication.v1.TokenRequest"),
    verbs=("create",),
)
"""Not served by itself."""

KINDS: Final = {"Pod": "pod", "Node": "node", "Secret": "secret"}
"""What a token may be bound to, and the claim that says so."""


def default(request: Object) -> None:
    """Give a request the lifetime that it does not say."""
    spec = request.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = DEFAULT_SECONDS


class TokenRequests:
    """Answers them. *uid* returns new uids."""

    def __init__(
        self,
        tokens: ServiceAccountTokens,
        store: Store,
        *,
        clock: Clock,
        uid: Callable[[], str],
    ) -> None:
        self._tokens = tokens
        self._store = store
        self._clock = clock
        self._uid = uid

    def answer(self, account: Stored, request: Object) -> Object:
        """Return *request*, which has its defaults, with a token of the stored service account.

        422 for what it may not ask, 404 and 409 when what it is to be bound to is not there.
        """
        namespace, name = account.key
        metadata, spec = request["metadata"], request["spec"]
        _check_names(metadata, namespace, name)
        audiences = spec.get("audiences") or [API_AUDIENCE]
        seconds = spec["expirationSeconds"]
        found = _check_lifetime(seconds) + _check_audiences(audiences)
        if found:
            raise errors.invalid(RESOURCE, "", found)
        reference = spec.get("boundObjectRef")
        bound = {} if reference is None else self._bound(account, reference)
        token = self._tokens.issue(
            account, token_id=self._uid(), seconds=seconds, audiences=audiences, bound=bound
        )
        now = self._clock.now()
        return {
            **request,
            "metadata": {
                **metadata,
                "name": name,
                "namespace": namespace,
                "uid": account.uid,
                "creationTimestamp": rfc3339(now),
            },
            "spec": {**spec, "audiences": list(audiences)},
            "status": {"token": token, "expirationTimestamp": rfc3339(int(now) + seconds)},
        }

    def _bound(self, account: Stored, reference: Object) -> dict[str, Bound]:
        """Return what a BoundObjectReference names, and the node of a pod beside it."""
        version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
        name = reference.get("name") or ""
        if kind not in KINDS or version != "v1":
            group, _, version = version.rpartition("/")
            what = f"{group}/{version}, Kind={kind}"
            raise errors.bad_request(f"cannot bind token to object of type {what}")
        claim = KINDS[kind]
        namespace = "" if claim == "node" else account.key[0]
        try:
            stored = self._store.get(BOUND[claim], namespace, name)
        except NotFoundError as exc:
            raise errors.not_found(find("", "v1", BOUND[claim]), name) from exc
        found = {claim: Bound(name, stored.uid)}
        if claim == "pod":
            spec = stored.decode()["spec"]
            if spec.get("serviceAccountName", "") != account.name:
                raise errors.bad_request(
                    f'cannot bind token for serviceaccount "{account.name}" to pod running with '
                    "different serviceaccount name."
                )
            if node := spec.get("nodeName"):
                found["node"] = self._node(node)
        uid = reference.get("uid")
        if uid and uid != stored.uid:
            raise _another(kind, name, uid)
        return found

    def _node(self, name: str) -> Bound:
        try:
            return Bound(name, self._store.get(BOUND["node"], "", name).uid)
        except NotFoundError:
            return Bound(name, "")


def _another(kind: str, name: str, uid: str) -> StatusError:
    why = (
        f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return StatusError(409, "Conflict", message, details={"name": name, "kind": kind})


def _check_names(metadata: Object, namespace: str, name: str) -> None:
    for field, want in (("name", name), ("namespace", namespace)):
        said = metadata.get(field) or want
        if said != want:
            why = f"must match the service account {field} if specified"
            found = field_errors.invalid(f"metadata.{field}", said, why)
            raise errors.invalid(RESOURCE, name, [found])


def _check_lifetime(seconds: int) -> list[FieldError]:
    path = "spec.expirationSeconds"
    if seconds < LEAST_SECONDS:
        why = "may not specify a duration less than 10 minutes"
        return [field_errors.invalid(path, seconds, why)]
    if seconds > MOST_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
        return [field_errors.invalid(path, seconds, why)]
    return []


def _check_audiences(audiences: Sequence[str]) -> list[FieldError]:
    if sum(len(audience) for audience in audiences) <= MOST_AUDIENCES_TEXT:
        return []
    return [field_errors.too_long("spec.audiences", MOST_AUDIENCES_TEXT)]
