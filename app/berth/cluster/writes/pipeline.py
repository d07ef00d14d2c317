"""The way of every write: change, defaults, ownership, admission, strategy, store.

A write does not suspend between reading an object and storing its successor, unless an async
admission step concerns it; so a patch never loses a race. One that did suspend is stored only if
the object is still what it was, and starts over if not, as ``GuaranteedUpdate`` of a real server.
HTTP is not known here; refusals are StatusErrors.
"""

from collections.abc import Callable

from berth.cluster import errors, views
from berth.cluster.options import DeleteOptions, version_problem
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.presence import complete
from berth.cluster.storage.store import AlreadyExistsError, ConflictError, NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.cluster.strategies import quantities
from berth.cluster.writes.admission.chain import Admission
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.deletion import Deletions, has_ended
from berth.cluster.writes.field_manager import FieldManager, unchanged
from berth.cluster.writes.identities import Identities
from berth.cluster.writes.subresources.action import Action, Outcome
from berth.cluster.writes.subresources.part import DROPPED_METADATA, KEPT_METADATA
from berth.cluster.writes.subresources.table import PARTS
from berth.cluster.written import without_text
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.runtime.clock import Clock, rfc3339

APPLY = "apply"

GENERATE_ATTEMPTS = 8
"""How often a taken generated name is drawn again."""

Change = Callable[[Object], Object]
"""Makes the proposed object, which says its type, of the current one: a patch. The
current one may become part of it, and it becomes part of what is stored; called once for each
attempt."""


def allowed() -> None:
    """Refuse nothing."""


class Writes:
    """Creates, updates and deletes objects of any kind."""

    def __init__(
        self,
        store: Store,
        deletions: Deletions,
        *,
        admission: Admission,
        clock: Clock,
        identities: Identities,
        field_manager: FieldManager,
    ) -> None:
        self._store = store
        self._deletions = deletions
        self._admission = admission
        self._clock = clock
        self._identities = identities
        self._field_manager = field_manager

    def get(self, resource: ResourceType, namespace: str, name: str) -> Stored:
        """Return the object or raise a 404."""
        try:
            return self._store.get(resource.storage_key, namespace, name)
        except NotFoundError:
            raise errors.not_found(resource, name) from None

    async def create(
        self, resource: ResourceType, namespace: str, body: Object, context: WriteContext
    ) -> Stored:
        """Create the object that a POST to *namespace* ("" when cluster-scoped) carries.

        *body* has metadata and becomes part of the object.
        """
        obj = {**body, **views.type_of(resource), "metadata": dict(body["metadata"])}
        return await self._create(resource, namespace, obj, context)

    async def update(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        change: Change,
        context: WriteContext,
        *,
        subresource: str = "",
    ) -> Stored:
        """Replace an object, or its part named *subresource*, by what *change* makes of it.

        Nothing is written when nothing changes. An object that waits for its last finalizer to go
        is gone after this.
        """
        return await self._update(resource, namespace, name, change, context, subresource)

    async def replace(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        read: Callable[[], Object],
        context: WriteContext,
        *,
        subresource: str = "",
        creating: Callable[[], None] = allowed,
    ) -> tuple[Stored, bool]:
        """Do what a PUT does; return the object, and whether it was created.

        *read* returns the body, anew each time. An object that is not there is created, if its kind
        may be and this is about no *subresource*; *creating* may refuse that.
        """
        body = read()
        _check_name(resource, namespace, name, body["metadata"])
        uid, bodies = body["metadata"].get("uid"), [body]

        def change(_current: Object) -> Object:
            return bodies.pop() if bodies else read()

        while True:
            there = self._find(resource, namespace, name)
            found = "" if there is None else there.uid
            may_create = resource.created_by_put and not subresource
            if uid and uid != found and (found or may_create):
                why = errors.invalid_object(
                    resource, namespace, name, uid, found, dry_run=context.dry_run
                )
                raise errors.conflict(resource, name, why)
            if found or not may_create:
                stored = await self._update(resource, namespace, name, change, context, subresource)
                return stored, False
            creating()
            obj = {**change({}), **views.type_of(resource)}
            obj["metadata"] = dict(obj["metadata"])
            try:
                return await self._create(resource, namespace, obj, context, by="PUT"), True
            except errors.StatusError as exc:
                if exc.reason != "AlreadyExists" or context.dry_run:
                    raise

    async def apply(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        applied: Object,
        context: WriteContext,
        *,
        force: bool = False,
        subresource: str = "",
        creating: Callable[[], None] = allowed,
    ) -> tuple[Stored, bool]:
        """Apply a configuration; return the object, and whether it was created.

        An object that is not there is created, unless this is about a *subresource*; *creating*
        may refuse that.
        """
        kind = PARTS[subresource].kind(resource)

        def change(live: Object) -> Object:
            return self._field_manager.apply(
                without_text(live, resource.written_field),
                applied,
                resource=kind,
                subresource=subresource,
                manager=context.field_manager,
                force=force,
                now=rfc3339(self._clock.now()),
            )

        while True:
            if subresource or self._find(resource, namespace, name):
                stored = await self._update(
                    resource, namespace, name, change, context, subresource, is_applied=True
                )
                return stored, False
            creating()
            said = applied.get("metadata") or {}
            if uid := said.get("uid"):
                why = (
                    f"uid mismatch: the provided object specified uid {uid}, and no existing "
                    "object was found"
                )
                raise errors.conflict(resource, name, why)
            metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
            obj = change({**views.type_of(resource), "metadata": metadata})
            _check_name(resource, namespace, name, said)
            try:
                return await self._create(resource, namespace, obj, context, by=APPLY), True
            except errors.StatusError as exc:
                if exc.reason != "AlreadyExists" or context.dry_run:
                    raise

    async def delete(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        options: DeleteOptions,
        context: WriteContext,
    ) -> tuple[Stored, bool]:
        """Delete an object, or mark it; return its state after that, and whether it is gone."""
        while True:
            stored = self.get(resource, namespace, name)
            if self._admission.handles(Operation.DELETE, resource, ""):
                old = views.as_object(resource, stored)
                request = AdmissionRequest(
                    Operation.DELETE, resource, "", namespace, name, None, old, context, options
                )
                await self._admission.mutate(request)
                await self._admission.validate(request)
            try:
                return self._deletions.delete(resource, stored, options)
            except ConflictError:
                continue

    async def act(
        self,
        action: Action,
        resource: ResourceType,
        namespace: str,
        name: str,
        body: Object,
        context: WriteContext,
    ) -> Outcome:
        """Let *action* do to an object what *body* says."""
        request = AdmissionRequest(
            Operation.CREATE, resource, action.name, namespace, name, body, None, context
        )
        await self._admission.mutate(request)
        await self._admission.validate(request)
        admitted = body if request.object is None else request.object
        return await action.act(resource, namespace, name, admitted, context)

    async def connect(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        subresource: str,
        context: WriteContext,
    ) -> None:
        """Let admission refuse a connection to an object: ``exec``, ``portforward``."""
        request = AdmissionRequest(
            Operation.CONNECT, resource, subresource, namespace, name, None, None, context
        )
        await self._admission.mutate(request)
        await self._admission.validate(request)

    async def _create(
        self,
        resource: ResourceType,
        namespace: str,
        obj: Object,
        context: WriteContext,
        *,
        by: str = "POST",
    ) -> Stored:
        metadata = obj["metadata"]
        version = metadata.pop("resourceVersion", "")
        if by != "POST" and version and (why := version_problem(version)):
            raise errors.StatusError(500, "", why)
        _take_namespace(resource, metadata, namespace)
        for key in (*KEPT_METADATA, *DROPPED_METADATA):
            metadata.pop(key, None)
        strategy = resource.strategy
        if not strategy.keeps_status_on_create:
            obj.pop("status", None)
        strategy.default(obj)
        if by != APPLY:
            self.own(None, obj, resource, "", context)
        name = metadata.get("name") or ""
        request = AdmissionRequest(
            Operation.CREATE, resource, "", namespace, name, obj, None, context
        )
        await self._admission.mutate(request)
        obj = request.object or obj
        metadata = obj["metadata"]
        self._name(resource, namespace, metadata)
        name = request.name = metadata.get("name") or ""
        metadata["uid"] = self._identities.uid()
        metadata["creationTimestamp"] = rfc3339(self._clock.now())
        strategy.prepare(obj, None)
        status = strategy.initial_status(obj)
        if status is not None:
            obj["status"] = {**status, **(obj.get("status") or {})}
            if resource.structural is None:
                complete(resource.schema.fields["status"].type, obj["status"])
        found = strategy.validate(obj, None)
        if not (found or name):
            why = "name or generateName is required"
            found = [field_errors.required("metadata.name", why)]
        _refuse(resource, name, found or quantities.errors(resource, obj, None))
        if resource.warnings is not None:
            context.warnings.extend(resource.warnings(obj, None))
        await self._admission.validate(request)
        if by == "POST" and not context.dry_run and _version(version):
            why = "resourceVersion should not be set on objects to be created"
            raise errors.StatusError(500, "", why)
        try:
            stored = self._store.create(
                resource.storage_key, resource.to_storage(obj), dry_run=context.dry_run
            )
        except AlreadyExistsError as exc:
            deleting = "deletionTimestamp" in exc.existing.decode()["metadata"]
            raise errors.already_exists(resource, name, deleting=deleting) from exc
        _tell(request)
        return stored

    async def _update(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        change: Change,
        context: WriteContext,
        subresource: str,
        *,
        is_applied: bool = False,
    ) -> Stored:
        part = PARTS[subresource]
        while True:
            stored = self.get(resource, namespace, name)
            old = views.as_object(resource, stored)
            shown = part.shown(resource, old)
            copy = views.as_object(resource, stored)
            if managed := old["metadata"].get("managedFields"):
                copy["metadata"]["managedFields"] = managed  # which is not changed, but compared
            new = change(part.shown(resource, copy))
            _check_name(resource, namespace, name, new["metadata"])
            _check_version(resource, new["metadata"], stored)
            if part.speaks_own_kind:
                new = part.merged(resource, new, old)
                resource.strategy.default(new)
                new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            if not is_applied:
                self.own(shown, new, part.kind(resource), subresource, context)
            request = AdmissionRequest(
                Operation.UPDATE, resource, subresource, namespace, name, new, shown, context
            )
            await self._admission.mutate(request)
            new = request.object or new
            if not part.speaks_own_kind:
                new = part.merged(resource, new, old)
            part.prepare(resource, new, old)
            found = part.validate(resource, new, old)
            _refuse(resource, name, found or quantities.errors(resource, new, old))
            if resource.warnings is not None and not subresource:
                context.warnings.extend(resource.warnings(new, old))
            await self._admission.validate(request)
            if unchanged(new, old):
                return stored
            try:
                if has_ended(new):
                    # Watchers see it go as it was stored.
                    gone = self._deletions.end(resource, stored, dry_run=context.dry_run)
                    return Stored(resource.to_storage(new), gone.version)
                updated = self._store.update(
                    resource.storage_key,
                    resource.to_storage(new),
                    expected=stored.version,
                    dry_run=context.dry_run,
                )
            except ConflictError:
                continue
            if request.on_stored is not None:
                _tell(request)
            return updated

    def own(
        self,
        live: Object | None,
        new: Object,
        resource: ResourceType,
        subresource: str,
        context: WriteContext,
    ) -> None:
        """Set the managed fields of *new*, which a client makes of *live*; None: it is new."""
        if new != live:
            self._field_manager.update(
                live,
                new,
                resource=resource,
                subresource=subresource,
                manager=context.field_manager,
                now=rfc3339(self._clock.now()),
            )

    def _find(self, resource: ResourceType, namespace: str, name: str) -> Stored | None:
        try:
            return self._store.get(resource.storage_key, namespace, name)
        except NotFoundError:
            return None

    def _name(self, resource: ResourceType, namespace: str, metadata: Object) -> None:
        """Generate a name, if there is only what it begins with."""
        prefix = metadata.get("generateName")
        if metadata.get("name") or not prefix:
            return
        for _ in range(GENERATE_ATTEMPTS):
            metadata["name"] = self._identities.name(prefix)
            if self._find(resource, namespace, metadata["name"]) is None:
                return


def _tell(request: AdmissionRequest) -> None:
    """Let the step that waits for it know that the object is stored."""
    if request.on_stored is not None and not request.context.dry_run:
        request.on_stored()


def _take_namespace(resource: ResourceType, metadata: Object, namespace: str) -> None:
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace", namespace) not in ("", namespace):
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = namespace


def _check_name(resource: ResourceType, namespace: str, name: str, metadata: Object) -> None:
    """Raise a 400 unless *metadata* says what the URL does."""
    said = metadata.get("name")
    if not said:
        raise errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if said != name:
        raise errors.bad_request(
            f"the name of the object ({said}) does not match the name on the URL ({name})"
        )
    _take_namespace(resource, metadata, namespace)


def _check_version(resource: ResourceType, metadata: Object, stored: Stored) -> None:
    """Raise unless a proposed object means the stored one in the state its author saw."""
    said = metadata.get("resourceVersion") or ""
    if said and (why := version_problem(said)):
        raise errors.StatusError(500, "", why)
    version = _version(said)
    if not version and resource.needs_version:
        raise errors.version_needed(resource, stored.name)
    if version not in (0, stored.version):
        raise errors.modified(resource, stored.name)


def _version(said: str) -> int:
    """Return a resource version; 0: any, or what is none."""
    return 0 if not said or version_problem(said) else int(said)


def _refuse(resource: ResourceType, name: str, found: list[FieldError]) -> None:
    if found:
        raise errors.invalid(resource, name, found)
