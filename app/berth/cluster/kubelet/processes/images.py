"""Images whose commands are known, and the words that a container runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from berth.cluster.kubelet.processes.agnhost import SUBCOMMANDS, agnhost
from berth.cluster.kubelet.processes.commands import COMMANDS, CONTROL
from berth.cluster.kubelet.processes.syntax import parse

SCRIPT: Final = "berth.dev/script"
"""Annotation: a script of the shell that main containers run instead of their command."""

KNOWN: Final = {**COMMANDS, "agnhost": agnhost, "pause": SUBCOMMANDS["pause"]}
"""All commands, by name."""


@dataclass(frozen=True, slots=True)
class Image:
    """What is in an image."""

    entrypoint: tuple[str, ...] | None = None
    """None: it is not known."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By path, without the first slash."""
    document_root: str = ""
    """The folder whose files are served on port 80."""
    is_known: bool = True


def _serving(root: str, page: str) -> Image:
    return Image(files={f"{root.strip('/')}/index.html": page}, document_root=root)


IMAGES: Final[Mapping[str, Image]] = {
    "agnhost": Image(entrypoint=("/agnhost",)),
    **dict.fromkeys(("busybox", "alpine", "bash", "debian", "ubuntu"), Image(entrypoint=())),
    "httpd": _serving(
        "/usr/local/apache2/htdocs", "<html><body><h1>It works!</h1></body></html>\n"
    ),
    "nginx": _serving(
        "/usr/share/nginx/html",
        "<html><head><title>Welcome to nginx!</title></head>"
        "<body><h1>Welcome to nginx!</h1></body></html>\n",
    ),
}
UNKNOWN: Final = Image(is_known=False)


def image_of(reference: str) -> Image:
    """Return what is known of an image; its registry, tag and digest do not matter."""
    name = reference.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return IMAGES.get(name, UNKNOWN)


def words_of(
    image: str, command: Sequence[str], args: Sequence[str], script: str = ""
) -> tuple[str, ...] | None:
    """Return what a container runs, if all of it is understood; None: nobody knows.

    *script* is that of the annotation, and takes the place of its command.
    """
    if not (script or command or args):
        return None  # as most: what images run by themselves is not known
    return _words_of(image, tuple(command), tuple(args), script)


@lru_cache(maxsize=1_000)
def _words_of(
    image: str, command: tuple[str, ...], args: tuple[str, ...], script: str
) -> tuple[str, ...] | None:
    if script:
        words: tuple[str, ...] = ("sh", "-c", script)
    elif command:
        words = (*command, *args)
    else:
        entrypoint = image_of(image).entrypoint
        if entrypoint is None:
            return None
        words = (*entrypoint, *args)
    return words if is_understood(words) else None


def is_understood(words: Sequence[str]) -> bool:
    """Tell whether a command can be run, with all that it runs itself."""
    name = words[0].rpartition("/")[2]
    if name == "agnhost":
        return len(words) > 1 and words[1] in SUBCOMMANDS
    if name not in ("sh", "bash", "ash"):
        return name in KNOWN
    options = [word for word in words[1:] if re.fullmatch(r"[-+][a-z]*c", word)]
    if not options:
        return False
    text = words[words.index(options[0]) + 1 : words.index(options[0]) + 2]
    try:
        # Variables of the container, which are expanded before, look like commands.
        _, commands = parse(re.sub(r"\$\([A-Za-z_]\w*\)", "x", "".join(text)))
    except SyntaxError:
        return False
    return bool(commands) and all(
        name is not None and (name.rpartition("/")[2] in KNOWN or name in CONTROL)
        for name in commands
    )
