"""Reads a Dockerfile as its builder does: comments out, continued lines joined, stages apart."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """From one FROM to the next."""

    base: str
    name: str = ""
    instructions: list[tuple[str, str]] = field(default_factory=list)
    """Keyword and arguments."""

    def all(self, keyword: str) -> list[str]:
        return [arguments for word, arguments in self.instructions if word == keyword]

    def copies(self) -> list[str]:
        """Return what is copied from the build context."""
        found = []
        for arguments in self.all("COPY"):
            *sources, _target = shlex.split(arguments)
            if not sources[0].startswith("--from="):
                found += sources
        return found


def stages(path: Path) -> list[Stage]:
    """Return the stages of the Dockerfile at *path*; ARGs before the first one are left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    found: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not line.strip():
            continue
        keyword, _, arguments = line.partition(" ")
        if keyword == "FROM":
            base, _, name = arguments.partition(" AS ")
            found.append(Stage(base, name))
        elif found:
            found[-1].instructions.append((keyword, arguments))
    return found
