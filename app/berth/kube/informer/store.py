"""Objects by key, and the handler of their changes."""

import logging
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Generic, Protocol, TypeVar

from berth.kube.informer.identity import Identify, Identity, is_older

log = logging.getLogger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ResourceEventHandler(Protocol[T_contra]):
    """Called for every change, in order. Synchronous; an error is logged and stops nothing."""

    def on_add(self, obj: T_contra, /) -> None: ...

    def on_update(self, old: T_contra, new: T_contra, /) -> None: ...

    def on_delete(self, obj: T_contra, /) -> None:
        """*obj* is the last known state; the deletion itself may have been missed."""


class Store(Generic[T]):
    """Objects by key; the only writer is its reflector."""

    def __init__(
        self,
        handler: ResourceEventHandler[T],
        *,
        identify: Identify[T],
        objects: dict[str, T] | None = None,
    ) -> None:
        """*objects* is where they are kept, empty at first."""
        self.objects: dict[str, T] = {} if objects is None else objects
        self.handler_failures = 0
        self._handler = handler
        self._identify = identify

    def put(self, identity: Identity, obj: T) -> None:
        """Store an object that a watch sent: new, changed, or known already.

        Repeated and outdated events change nothing. An object with another uid is another object,
        so the old one is deleted first.
        """
        key, version, uid = identity
        old = self.objects.get(key)
        if old is not None:
            _, old_version, old_uid = self._identify(old)
            if version == old_version or is_older(version, old_version):
                return
            if uid != old_uid:
                self.remove(key)
                old = None
        self._set(key, obj, old)

    def remove(self, key: str, last_state: T | None = None) -> None:
        """Remove an object, if it is there.

        The handler gets *last_state* if it is of that object, else the stored state.
        """
        old = self.objects.pop(key, None)
        if old is None:
            return
        if last_state is None or self._identify(last_state).uid != self._identify(old).uid:
            last_state = old
        self._notify(key, self._handler.on_delete, last_state)

    def replace(self, listed: Mapping[str, T], *, keep: Set[str]) -> Iterator[None]:
        """Become what was *listed*, step by step, and notify the handler of the difference.

        Stored objects that are not listed are removed, except those in *keep*. Listed versions
        count even if they are older, as after a restored backup. Yields after each object, so that
        the caller can let others run; in between, the store is partly the old one.
        """
        for key, obj in listed.items():
            old = self.objects.get(key)
            if old is None:
                self._set(key, obj, None)
            else:
                self._update(key, obj, old)
            yield
        if len(self.objects) > len(listed):
            for key in [*self.objects]:
                if key not in listed and key not in keep:
                    self.remove(key)
                yield

    def _update(self, key: str, obj: T, old: T) -> None:
        """Take over a listed object in place of one of the same name."""
        known, identity = self._identify(old), self._identify(obj)
        if known.uid != identity.uid:
            self.remove(key)
            self._set(key, obj, None)
        elif known != identity:
            self._set(key, obj, old)

    def _set(self, key: str, obj: T, old: T | None) -> None:
        self.objects[key] = obj
        if old is None:
            self._notify(key, self._handler.on_add, obj)
        else:
            self._notify(key, self._handler.on_update, old, obj)

    def _notify(self, key: str, method: Callable[..., None], *objects: T) -> None:
        try:
            method(*objects)
        except Exception:
            self.handler_failures += 1
            log.exception("event handler failed", extra={"key": key, "handler": method.__name__})
