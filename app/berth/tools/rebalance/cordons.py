"""The cordons of one run: who set them is written on the nodes, so that none is left behind."""

from collections.abc import Callable, Collection
from typing import Any, Final

from berth.kube.client.errors import ApiError, ConflictError, NotFoundError
from berth.tools.rebalance.patient_api import PatientApi, RebalanceStoppedError

ANNOTATION: Final = "berth.dev/cordoned-by-rebalance"
"""Of a node that a run has cordoned: which run it was."""

Object = dict[str, Any]


class Cordons:
    """Cordons nodes, and uncordons those that it has cordoned, but no others."""

    def __init__(self, api: PatientApi, *, run: str, tell: Callable[[str], None]) -> None:
        """*run* is the value of the annotation; *tell* hears of what is done."""
        self._api = api
        self._run = run
        self._tell = tell
        self.names: set[str] = set()
        """The nodes that this run may have cordoned."""

    async def cordon(self, name: str) -> None:
        """Cordon a node, unless it is: then somebody else has done so."""
        if name in self.names:
            return
        while True:
            node = await self._api.ask("GET", _path(name))
            if node.get("spec", {}).get("unschedulable"):
                return
            self.names.add(name)  # before it is asked for: the answer may be lost
            try:
                await self._patch(node, unschedulable=True, annotation=self._run)
            except ConflictError:
                continue
            self._tell(f"cordon {name}")
            return

    async def uncordon(self, name: str, *, keep: bool = False) -> None:
        """Undo what :meth:`cordon` did; if it is to *keep*, only forget who has cordoned it."""
        while name in self.names:
            try:
                node = await self._api.ask("GET", _path(name))
                is_ours = owner_of(node) == self._run
                if is_ours:
                    await self._patch(node, unschedulable=keep or None, annotation=None)
            except ConflictError:
                continue
            except NotFoundError:
                is_ours = False
            self.names.discard(name)
            if is_ours:
                self._tell(f"{name} stays cordoned" if keep else f"uncordon {name}")

    async def keep_only(self, names: Collection[str]) -> None:
        """Uncordon all others that this run has cordoned."""
        for name in sorted(self.names.difference(names)):
            await self.uncordon(name)

    async def lift(self) -> None:
        """Uncordon all nodes that this run has cordoned; tell of each that it cannot."""
        for name in sorted(self.names):
            try:
                await self.uncordon(name)
            except (ApiError, RebalanceStoppedError) as exc:
                self._tell(
                    f"{name} stays cordoned: {exc}; `berth rebalance --uncordon` uncordons it"
                )

    async def _patch(
        self, node: Object, *, unschedulable: bool | None, annotation: str | None
    ) -> None:
        meta = node["metadata"]
        body = {
            "metadata": {
                "resourceVersion": meta["resourceVersion"],
                "annotations": {ANNOTATION: annotation},
            },
            "spec": {"unschedulable": unschedulable},
        }
        await self._api.ask("PATCH", _path(meta["name"]), body)


async def cordoned_by_runs(api: PatientApi) -> dict[str, str]:
    """Return the nodes that runs have cordoned, and which run each."""
    nodes = (await api.ask("GET", "/api/v1/nodes"))["items"]
    return {node["metadata"]["name"]: run for node in nodes if (run := owner_of(node))}


async def uncordon_left_behind(
    api: PatientApi, tell: Callable[[str], None], is_left: Callable[[str], bool]
) -> dict[str, str]:
    """Uncordon the nodes of every run that *is_left* says has ended; return those of others."""
    runs = await cordoned_by_runs(api)
    for name, run in runs.items():
        if is_left(run):
            cordons = Cordons(api, run=run, tell=tell)
            cordons.names.add(name)
            await cordons.uncordon(name)
    return {name: run for name, run in runs.items() if not is_left(run)}


def owner_of(node: Object) -> str:
    """Return the run that has cordoned *node*; empty if none has."""
    return str((node["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def _path(name: str) -> str:
    return f"/api/v1/nodes/{name}"
