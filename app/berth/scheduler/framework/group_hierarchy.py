"""Groups, and the groups that these are parts of (1.37 spec N11).

::

    CompositePodGroup          the root: what waits in the queue, and is tried, as one
      |- CompositePodGroup
      |    `- PodGroup
      `- PodGroup              pods name PodGroups only

Without the gate CompositePodGroup every PodGroup is a root.
"""

from collections.abc import Callable, Iterator
from typing import Final

from berth.kube.objects.pod_group import CompositeKey, CompositePodGroup, GroupKey, PodGroup
from berth.scheduler.framework.listers import Lister


class GroupHierarchy:
    """PodGroups and CompositePodGroups as the watches last reported them.

    A group may be seen before its parent; until then it is the root of what is known.
    """

    def __init__(
        self, groups: Lister[PodGroup], composites: Lister[CompositePodGroup] | None = None
    ) -> None:
        """Without *composites* no group has a parent, whatever it says."""
        self._groups = groups
        self._composites = composites
        self._children: dict[GroupKey, dict[GroupKey, None]] = {}
        if composites is not None:
            groups.follow(self._note)
            composites.follow(self._note)

    def _note(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if old is not None and (parent := old.parent_key) is not None:
            children = self._children[parent]
            del children[old.key]
            if not children:
                del self._children[parent]
        if new is not None and (parent := new.parent_key) is not None:
            self._children.setdefault(parent, {})[new.key] = None

    @property
    def has_composites(self) -> bool:
        """Whether the gate CompositePodGroup is on."""
        return self._composites is not None

    def get(self, key: GroupKey) -> PodGroup | None:
        """Return the PodGroup or, given the key of one, the CompositePodGroup."""
        lister: Lister[PodGroup] | Lister[CompositePodGroup] | None = (
            self._composites if isinstance(key, CompositeKey) else self._groups
        )
        return None if lister is None else lister.get(key.namespace, key.name)

    def root(self, key: GroupKey) -> PodGroup | None:
        """Return the topmost group that is known above *key*, perhaps its own; None without that.

        That of a group in a ring of parents is its own.
        """
        group = self.get(key)
        return None if group is None else self.root_above(group)

    def root_above(self, group: PodGroup) -> PodGroup:
        """Return the topmost group that is known above *group*, which may be gone."""
        return self._path(group)[-1]

    def _path(self, group: PodGroup) -> list[PodGroup]:
        """Return *group*, its parent, and so on as far as known; in a ring, *group* alone."""
        path = [group]
        if self._composites is not None:
            while (parent := path[-1].parent_key) is not None:
                above = self.get(parent)
                if above is None:
                    break
                if above in path:
                    return [group]
                path.append(above)
        return path

    def evicted_with(self, key: GroupKey) -> PodGroup | None:
        """Return the topmost group, at or above *key*, that is evicted as a whole; None without."""
        group = self.get(key)
        path = () if group is None else self._path(group)
        return next((each for each in reversed(path) if each.is_evicted_as_a_whole), None)

    def root_key(self, key: GroupKey) -> GroupKey:
        """Return the key of the root above *key*; of a group that is not known, *key*."""
        if self._composites is None:
            return key
        root = self.root(key)
        return key if root is None else root.key

    def missing_above(self, key: GroupKey) -> str:
        """Return what is wrong with the ancestors of a known group; empty if all are known."""
        root = self.root(key)
        parent = None if root is None or self._composites is None else root.parent_key
        if parent is None:
            return ""
        if self.get(parent) is not None:
            return f"composite pod group {parent} is its own ancestor"
        return parent.not_found

    def children(self, key: GroupKey) -> list[PodGroup]:
        """Return the groups that name *key* as their parent, the oldest first."""
        known = (self.get(child) for child in self._children.get(key, ()))
        return sorted((child for child in known if child is not None), key=_age)

    def tree(self, group: PodGroup) -> Iterator[PodGroup]:
        """Yield *group* and all groups below it, in the order in which they are tried."""
        left, seen = [group], {group.key}
        while left:
            group = left.pop()
            yield group
            if group.key in self._children:
                below = [child for child in self.children(group.key) if child.key not in seen]
                seen.update(child.key for child in below)
                left += reversed(below)

    def leaves(self, group: PodGroup) -> Iterator[GroupKey]:
        """Yield the PodGroups at or below *group*, as :meth:`tree` does."""
        return (each.key for each in self.tree(group) if not isinstance(each, CompositePodGroup))

    def has_enough(
        self,
        group: PodGroup,
        count: Callable[[GroupKey], int],
        needed: Callable[[PodGroup], int] = lambda group: group.min_count or 1,
    ) -> bool:
        """Whether *group* has what it needs, by the number of pods that each PodGroup has.

        A CompositePodGroup needs so many groups that have what they need; by default a basic group
        needs one pod or one group. *group* must be no group of a ring, as no root is.
        """
        if not isinstance(group, CompositePodGroup):
            return count(group.key) >= needed(group)
        left = needed(group)
        for child in filter(None, map(self.get, self._children.get(group.key, ()))):
            left -= self.has_enough(child, count, needed)
            if left <= 0:
                return True
        return False


def _age(group: PodGroup) -> tuple[str, str, str]:
    meta = group.metadata
    return meta.creation_timestamp or "", meta.name, group.key.ENTITY_TYPE


NO_HIERARCHY: Final = GroupHierarchy(Lister())
"""What there is while the gate GenericWorkload is off."""
