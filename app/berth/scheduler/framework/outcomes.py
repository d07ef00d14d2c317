"""Outcomes of plugins' work that nobody else sees, for observers; plugins decide alike."""

from typing import Final, Literal, Protocol

VolumeStage = Literal["predicate", "assume", "bind"]
"""Looking for volumes, taking them for a pod, having them bound: as kube-scheduler names it."""

DeviceWait = Literal["success", "failure", "timeout", "error"]
"""How waiting for devices ends: they are ready, one says no, they take too long, or it broke."""


class Outcomes(Protocol):
    """Told by plugins at the moments that kube-scheduler's own plugins count (spec §8)."""

    def volume_stage_failed(self, stage: VolumeStage) -> None:
        """What a pod's volumes needed broke; that a node is refused for them is no failure."""
        ...

    def waited_for_devices(
        self, profile: str, driver: str, status: DeviceWait, *, seconds: float
    ) -> None:
        """The binding of a pod of *profile* had to wait for devices of *driver*."""
        ...

    def evaluated_preemption(self, result: str, *, seconds: float) -> None:
        """A pod that preempts alone has looked for victims; *result* is the name of a code."""
        ...


class _Nobody:
    def volume_stage_failed(self, stage: VolumeStage) -> None: ...

    def waited_for_devices(
        self, profile: str, driver: str, status: DeviceWait, *, seconds: float
    ) -> None: ...

    def evaluated_preemption(self, result: str, *, seconds: float) -> None: ...


NOBODY: Final[Outcomes] = _Nobody()
"""Is told and forgets."""
