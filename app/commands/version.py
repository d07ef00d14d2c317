"""``berth version``."""

from collections.abc import Sequence
from importlib.metadata import version

from app.commands.terminal import say


def main(_argv: Sequence[str]) -> int:
    say(f"berth {version('berth')}")
    return 0
