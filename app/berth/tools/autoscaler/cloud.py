"""The cloud of a simulated cluster: machines that come after a while, or not at all. Synchronous.

::

    increase_size --> CREATING --time--> RUNNING (its kubelet registers the node) --delete--> gone
                         +--------> failed: reported once, and forgotten
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from typing import Final, Protocol

from berth.cluster.kubelet.node_template import NodeTemplate
from berth.tools.autoscaler.node_groups import NodeGroup

OUT_OF_RESOURCES: Final = "outOfResource"
"""The error code of a machine that does not come."""


class Machines(Protocol):
    """Who runs the machines; :class:`berth.cluster.kubelet.hollow_kubelets.HollowKubelets`."""

    def add_node(self, template: NodeTemplate, name: str) -> None:
        """Start a machine, which registers the node *name*."""
        ...

    def remove_node(self, name: str) -> None:
        """Take a machine away; nothing happens if there is none."""
        ...


class State(Enum):
    CREATING = auto()
    RUNNING = auto()


@dataclass(slots=True)
class Instance:
    """A machine. Times are in seconds, monotonic."""

    name: str
    group: str
    state: State
    due_at: float
    unregistered_since: float
    """Since when there is no node of its name."""
    was_registered: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Machines of a group that did not come."""

    group: str
    names: tuple[str, ...]
    code: str
    message: str


class Cloud:
    """The machines of node groups. Nothing happens by itself: :meth:`advance` says what time it is.

    A group's target size is how many machines it has, those included that are to come.
    """

    def __init__(
        self, groups: Iterable[NodeGroup], machines: Machines, *, rng: random.Random
    ) -> None:
        self.groups: Mapping[str, NodeGroup] = {group.name: group for group in groups}
        self._machines = machines
        self._rng = rng
        self._instances: dict[str, Instance] = {}
        self._names_taken: set[str] = set()

    @property
    def instances(self) -> Mapping[str, Instance]:
        """By name of their node."""
        return self._instances

    def of_group(self, group: str) -> list[Instance]:
        return [instance for instance in self._instances.values() if instance.group == group]

    def target_size(self, group: str) -> int:
        return len(self.of_group(group))

    def start_at(self, now: float, *, nodes: Iterable[tuple[str, str]] = ()) -> None:
        """Start the machines that a cluster begins with: they are there at once.

        *nodes* are those that it has already, with the names of their groups. Others make each
        group as large as its initial size.
        """
        for name, known in nodes:
            if known in self.groups:
                self._start(self._new(name, known, now, due_at=now))
        for group in self.groups.values():
            while self.target_size(group.name) < group.initial_size:
                self._start(self._new(self._free_name(group), group.name, now, due_at=now))

    def increase_size(self, group: str, delta: int, *, now: float) -> list[str]:
        """Ask for *delta* more machines; return the names that their nodes will have.

        Raises ValueError if the group would be larger than its maximum.
        """
        node_group = self.groups[group]
        size = self.target_size(group) + delta
        if delta < 1 or size > node_group.max_size:
            raise ValueError(f"size increase too large, desired:{size} max:{node_group.max_size}")
        due_at = now + node_group.provision_seconds
        return [
            self._new(self._free_name(node_group), group, now, due_at=due_at).name
            for _ in range(delta)
        ]

    def delete(self, name: str) -> None:
        """Delete a machine; the target size shrinks with it."""
        if self._instances.pop(name, None) is not None:
            self._machines.remove_node(name)

    def advance(self, now: float) -> list[Failure]:
        """Start the machines whose time has come; return which of them do not come."""
        failed: dict[str, list[str]] = {}
        for instance in list(self._instances.values()):
            if instance.state is State.RUNNING or instance.due_at > now:
                continue
            rate = self.groups[instance.group].failure_rate
            if rate and self._rng.random() < rate:
                del self._instances[instance.name]
                failed.setdefault(instance.group, []).append(instance.name)
            else:
                self._start(instance)
        return [
            Failure(group, tuple(names), OUT_OF_RESOURCES, f"no capacity for {', '.join(names)}")
            for group, names in failed.items()
        ]

    def next_due(self) -> float | None:
        """Return when the next machine comes, monotonic; None if none is to come."""
        due = (
            instance.due_at
            for instance in self._instances.values()
            if instance.state is State.CREATING
        )
        return min(due, default=None)

    def _new(self, name: str, group: str, now: float, *, due_at: float) -> Instance:
        made = Instance(name, group, State.CREATING, due_at=due_at, unregistered_since=now)
        self._instances[name] = made
        self._names_taken.add(name)
        return made

    def _start(self, instance: Instance) -> None:
        instance.state = State.RUNNING
        self._machines.add_node(self.groups[instance.group].template, instance.name)

    def _free_name(self, group: NodeGroup) -> str:
        """Return a name that no node ever had: what was said of one is not of another."""
        names = (f"{group.template.prefix}{number}" for number in count())
        return next(name for name in names if name not in self._names_taken)
