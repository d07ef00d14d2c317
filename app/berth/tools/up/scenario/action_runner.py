"""Performs the actions of a scenario, as a client of the API."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from berth.cluster import install_order
from berth.cluster.loading import Loader
from berth.cluster.sources import Gathered
from berth.kube.client.discovery import Discovery, UnknownKindError
from berth.kube.client.errors import ApiError
from berth.scheduler.config.errors import ConfigError
from berth.tools.up.scenario.actions import (
    Action,
    Delete,
    Drain,
    Evict,
    Manifests,
    Patch,
    Scale,
    Taint,
    Target,
)
from berth.tools.up.scenario.drain import Drainer, cordon, evict
from berth.tools.up.scenario.load import ScenarioFile
from berth.tools.up.scenario.references import resource_of
from berth.tools.up.scenario.simulation import Simulation

FIELD_MANAGER: Final = "berth-scenario"
APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
PATCH_TYPES: Final = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": MERGE,
    "json": "application/json-patch+json",
}
FAILURE: Final = "berth.dev/failure"
"""The annotation of a Node that its hollow kubelet obeys."""


class ActionError(Exception):
    """An action could not be performed; the message says which and why."""


class ActionRunner:
    """Performs actions on *simulation*. *say* is told of what takes its time."""

    def __init__(
        self, simulation: Simulation, file: ScenarioFile, *, say: Callable[[str], None]
    ) -> None:
        self._simulation = simulation
        self._api = simulation.api
        self._clock = simulation.clock
        self._file = file
        self._say = say
        self._resource_of = partial(resource_of, release=file.release)
        self._discovery = Discovery(simulation.api)
        self._drains: list[asyncio.Task[None]] = []

    async def perform(self, action: Action) -> None:
        """Do it, and return when that is done. Raises ActionError."""
        perform: Mapping[str, Callable[[Any], Awaitable[None]]] = {
            "create": self._create,
            "apply": self._apply,
            "delete": self._delete,
            "patch": self._patch,
            "label": lambda given: self._set(given, "labels", given.labels),
            "annotate": lambda given: self._set(given, "annotations", given.annotations),
            "use": lambda given: self._set(given, "annotations", given.annotations),
            "scale": self._scale,
            "taint": self._taint,
            "cordon": partial(self._cordon, unschedulable=True),
            "uncordon": partial(self._cordon, unschedulable=False),
            "drain": self._drain,
            "evict": self._evict,
            "stop_nodes": partial(self._fail, how="stopped"),
            "disconnect_nodes": partial(self._fail, how="unreachable"),
            "heal_nodes": partial(self._fail, how=None),
            "add_nodes": self._simulation.add_nodes,
            "remove_nodes": self._remove,
            "scheduler": self._schedule,
            "configure_scheduler": self._configure,
        }
        name = Action.model_fields[action.kind].alias
        try:
            await perform[action.kind](getattr(action, action.kind))
        except (ApiError, ConfigError, UnknownKindError, ValueError, TimeoutError) as exc:
            if action.refused and action.refused in str(exc):
                return
            expected = f" (to be refused: {action.refused!r})" if action.refused else ""
            raise ActionError(f"{name}: {exc}{expected}") from exc
        if action.refused:
            raise ActionError(f"{name}: it was to be refused: {action.refused!r}, and was not")

    async def finish(self) -> None:
        """Return when all drains in the background are done. Raises ActionError."""
        for task in self._drains:
            try:
                await task
            except (ApiError, TimeoutError) as exc:
                raise ActionError(f"drain: {exc}") from exc

    async def cancel(self) -> None:
        """End what goes on in the background."""
        for task in self._drains:
            task.cancel()
        await asyncio.gather(*self._drains, return_exceptions=True)

    # Objects.

    async def _create(self, given: Manifests) -> None:
        told: list[str] = []
        loader = Loader(self._api, clock=self._clock, say=told.append)
        await loader.load(Gathered(self._file.objects(given)))
        if loader.refused.objects:
            raise ValueError("; ".join(told))

    async def _apply(self, given: Manifests) -> None:
        objects = self._file.objects(given)
        for _, obj in sorted(objects, key=lambda read: install_order.place(read[1])):
            collection = await self._discovery.collection_of(obj)
            path = f"{collection}/{obj['metadata']['name']}"
            params = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
            body = msgspec.json.encode(obj)
            await self._api.request("PATCH", path, params=params, body=body, content_type=APPLY)

    async def _delete(self, given: Delete) -> None:
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": given.propagation_policy,
        }
        if given.grace_period_seconds is not None:
            options["gracePeriodSeconds"] = given.grace_period_seconds
        for path in await self._paths(given):
            await self._api.request("DELETE", path, body=msgspec.json.encode(options))

    async def _patch(self, given: Patch) -> None:
        below = f"/{given.subresource}" if given.subresource else ""
        for path in await self._paths(given):
            await self._patch_at(path + below, given.patch, PATCH_TYPES[given.type])

    async def _set(self, given: Target, name: str, values: Mapping[str, str | None]) -> None:
        for path in await self._paths(given):
            await self._patch_at(path, {"metadata": {name: dict(values)}})

    async def _scale(self, given: Scale) -> None:
        path = self._resource_of(given.kind).path_of(given.namespace, given.name)
        await self._patch_at(f"{path}/scale", {"spec": {"replicas": given.replicas}})

    async def _evict(self, given: Evict) -> None:
        target = Target(
            kind="Pod", namespace=given.namespace, name=given.name, selector=given.selector
        )
        for path in await self._paths(target):
            name = path.rpartition("/")[2]
            await evict(self._api, given.namespace, name, grace_seconds=given.grace_period_seconds)

    # Nodes.

    async def _taint(self, given: Taint) -> None:
        for name in given.nodes:
            path = self._resource_of("Node").path_of("", name)
            node = msgspec.json.decode(await self._api.request("GET", path))
            taints = list(node["spec"].get("taints") or ())
            for text in given.taints:
                taints = tainted(taints, text)
            await self._patch_at(path, {"spec": {"taints": taints or None}})

    async def _cordon(self, nodes: Iterable[str], *, unschedulable: bool) -> None:
        for node in nodes:
            await cordon(self._api, node, unschedulable=unschedulable)

    async def _drain(self, given: Drain) -> None:
        drainer = Drainer(self._api, clock=self._clock, say=self._say)

        async def drain() -> None:
            draining = asyncio.ensure_future(
                drainer.drain(given.node, grace_seconds=given.grace_period_seconds)
            )
            limit = asyncio.ensure_future(self._clock.sleep(given.timeout.seconds))
            try:
                await asyncio.wait({draining, limit}, return_when=asyncio.FIRST_COMPLETED)
                if not draining.done():
                    raise TimeoutError(f"node {given.node} is not drained after {given.timeout}")
                await draining
            finally:
                draining.cancel()
                limit.cancel()

        if given.in_background:
            self._drains.append(asyncio.create_task(drain(), name=f"drain {given.node}"))
        else:
            await drain()

    async def _fail(self, nodes: Iterable[str], *, how: str | None) -> None:
        for node in nodes:
            path = self._resource_of("Node").path_of("", node)
            await self._patch_at(path, {"metadata": {"annotations": {FAILURE: how}}})

    async def _remove(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            await self._simulation.remove_node(node)

    # The scheduler.

    async def _schedule(self, what: str) -> None:
        if what != "start":
            await self._simulation.stop_scheduler()
        if what != "stop":
            await self._simulation.start_scheduler()

    async def _configure(self, given: Mapping[str, Any]) -> None:
        self._simulation.configure_scheduler(self._file.configuration(given))

    async def _paths(self, target: Target) -> list[str]:
        """Return the URLs of the objects. Raises ValueError when a selector takes none."""
        resource = self._resource_of(target.kind)
        namespace = target.namespace if resource.namespaced else ""
        if target.name:
            return [resource.path_of(namespace, target.name)]
        params = {"labelSelector": target.selector}
        path = resource.collection_path(namespace)
        listed = msgspec.json.decode(await self._api.request("GET", path, params=params))
        names = sorted(item["metadata"]["name"] for item in listed["items"])
        if not names:
            raise ValueError(f"there is no {target.kind} with the labels {target.selector!r}")
        return [resource.path_of(namespace, name) for name in names]

    async def _patch_at(self, path: str, patch: Any, content_type: str = MERGE) -> None:
        body = msgspec.json.encode(patch)
        await self._api.request("PATCH", path, body=body, content_type=content_type)


def tainted(taints: list[dict[str, str]], text: str) -> list[dict[str, str]]:
    """Return *taints* after ``kubectl taint`` with *text*: ``key=value:Effect``, or with a ``-``.

    Raises ValueError when it has no effect to set, or there is no such taint to remove.
    """
    what, _, effect = text.removesuffix("-").partition(":")
    key, _, value = what.partition("=")
    others = [
        taint for taint in taints if taint["key"] != key or effect not in ("", taint["effect"])
    ]
    if text.endswith("-"):
        if len(others) == len(taints):
            raise ValueError(f"taint {text!r} not found")
        return others
    if not effect:
        raise ValueError(f"taint {text!r}: an effect is needed, as in key=value:NoSchedule")
    return [*others, {"key": key, "effect": effect, **({"value": value} if value else {})}]
