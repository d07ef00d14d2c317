"""Files of a container, in memory: its own, and those of the volumes that it mounts."""

from collections.abc import Mapping
from typing import Final

MOST_BYTES: Final = 2**20
"""In one volume, and as many in the files of a container."""
MOST_FILES: Final = 10_000


class Volume:
    """A tree of files. Paths are relative; a path with None is a folder."""

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.version = 0
        """Grows with each change."""
        self.entries: dict[str, str | None] = {"": None}
        for path, text in (files or {}).items():
            self.make_folder(path.rpartition("/")[0])
            self.entries[path] = text

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it."""
        while path not in self.entries:
            self.entries[path] = None
            path = path.rpartition("/")[0]
        self.version += 1

    def names_in(self, folder: str) -> set[str]:
        prefix = f"{folder}/" if folder else ""
        return {
            path[len(prefix) :].split("/")[0]
            for path in self.entries
            if path and path.startswith(prefix)
        }

    def write(self, path: str, text: str) -> None:
        """Write a file; OSError if its folder is none, or there is no room."""
        folder = path.rpartition("/")[0]
        if self.entries.get(folder, "") is not None:
            raise FileNotFoundError("No such file or directory")
        if path in self.entries and self.entries[path] is None:
            raise IsADirectoryError("Is a directory")
        self.entries.pop(path, None)
        used = sum(len(content or "") for content in self.entries.values())
        if used + len(text) > MOST_BYTES or len(self.entries) >= MOST_FILES:
            raise OSError("No space left on device")
        self.entries[path] = text
        self.version += 1

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        for each in [each for each in self.entries if each == path or each.startswith(f"{path}/")]:
            if each:
                del self.entries[each]
        self.version += 1


class Files:
    """The files that a container sees. Paths are absolute; what fails raises OSError."""

    def __init__(self, root: Volume, mounts: Mapping[str, tuple[Volume, str]]) -> None:
        """*mounts* are volumes by mount path, each with the path in it that is mounted."""
        self._mounts = {"": (root, "")}
        for path in sorted(mounts):
            volume, below = mounts[path]
            point = path.strip("/")
            holder, inside = self._at(f"/{point}")
            if below and below in volume.entries and volume.entries[below] is not None:
                holder.make_folder(inside.rpartition("/")[0])
                holder.entries.setdefault(inside, "")
            else:
                holder.make_folder(inside)
                volume.make_folder(below)
            self._mounts[point] = (volume, below)

    @property
    def version(self) -> int:
        """Changes with each change of a file."""
        return sum(volume.version for volume, _ in self._mounts.values())

    def read(self, path: str) -> str:
        content = self._found(path)
        if content is None:
            raise IsADirectoryError("Is a directory")
        return content

    def write(self, path: str, text: str, *, append: bool = False) -> None:
        if path.startswith("/dev/") and path != "/dev/termination-log":
            return
        volume, inside = self._at(path)
        before = (volume.entries.get(inside) or "") if append else ""
        volume.write(inside, before + text)

    def make_folder(self, path: str) -> None:
        volume, inside = self._at(path)
        if volume.entries.get(inside, None) is not None:
            raise FileExistsError("File exists")
        volume.make_folder(inside)

    def remove(self, path: str) -> None:
        self._found(path)
        volume, inside = self._at(path)
        volume.remove(inside)

    def is_there(self, path: str) -> bool:
        volume, inside = self._at(path)
        return inside in volume.entries or path == "/dev/null"

    def is_folder(self, path: str) -> bool:
        volume, inside = self._at(path)
        return inside in volume.entries and volume.entries[inside] is None

    def names_in(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; of a file its own path."""
        if self._found(path) is not None:
            return [path]
        volume, inside = self._at(path)
        point = path.strip("/")
        prefix = f"{point}/" if point else ""
        mounted = {
            mount[len(prefix) :].split("/")[0]
            for mount in self._mounts
            if mount and mount != point and mount.startswith(prefix)
        }
        return sorted(volume.names_in(inside) | mounted)

    def _found(self, path: str) -> str | None:
        if path == "/dev/null":
            return ""
        volume, inside = self._at(path)
        if inside not in volume.entries:
            raise FileNotFoundError("No such file or directory")
        return volume.entries[inside]

    def _at(self, path: str) -> tuple[Volume, str]:
        """Return the volume that has *path*, and the path in it."""
        path = path.strip("/")
        point = path
        while point not in self._mounts:
            point = point.rpartition("/")[0]
        volume, below = self._mounts[point]
        rest = path[len(point) :].strip("/")
        return volume, "/".join(part for part in (below, rest) if part)
