"""Progress on a terminal of some size: pending pods first, then the fullest nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from berth.runtime.tables import GAP, Clipped, Content, Stack, Styled, Table, height_of
from berth.scheduler.framework.words import counted
from berth.tools.up.progress import NodeUse, Pending, Progress

REASON_LINES: Final = 3
LEAST_WIDTH: Final = 5
"""A column that would have to be narrower is left out."""
WIDE, MEDIUM = 100, 70
"""From so many columns on there is room for long bars, for short ones."""


def render(progress: Progress, *, title: Sequence[str], width: int, height: int) -> Content:
    """Return *progress* as at most *height* lines of at most *width* columns.

    The lines of *title* come first. Pods that fit nowhere get up to half of the others, or what
    the nodes leave.
    """
    parts: list[Content] = [
        *(Clipped(Styled((line, "bold")), lines=1) for line in title),
        Clipped(progress.line(), lines=2),
    ]
    if progress.node_groups:
        parts.append(Clipped(progress.groups_line, lines=2))
    room = height - height_of(Stack(parts), width=width)
    parts += _pending(
        progress.pending,
        width=width,
        height=max((room + 1) // 2, room - progress.node_count - 1),
    )
    room = height - height_of(Stack(parts), width=width)
    return Stack([*parts, *_nodes(progress, width=width, height=room)])


def _pending(pending: Sequence[Pending], *, width: int, height: int) -> list[Content]:
    if not pending or height < 2:
        return []
    parts: list[Content] = [Styled(("fits nowhere", "bold red"))]
    room = height - 1
    for index, same in enumerate(pending):
        left = len(pending) - index
        free = room - (left > 1)  # the last line is for how many there are besides
        text = Styled((same.who, "bold"), (f": {same.words}", ""))
        part = Clipped(text, lines=REASON_LINES if index else min(REASON_LINES, max(free, 1)))
        lines = height_of(part, width=width)
        if index and lines > free:
            pods = sum(same.others + 1 for same in pending[index:])
            parts.append(_more(f"{counted(pods, 'more pod')}, for {counted(left, 'other reason')}"))
            break
        parts.append(part)
        room -= lines
        if not room:
            break
    return parts


def _more(what: str) -> Content:
    return Clipped(Styled((f"and {what}", "dim")), lines=1)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    cells: Sequence[str | Styled]
    width: int
    right: bool = False


def _nodes(progress: Progress, *, width: int, height: int) -> list[Content]:
    rows = height - 1
    if progress.node_count > rows:
        rows -= 1
    shown = progress.nodes[: max(rows, 0)]
    if not shown:
        return []
    columns = list(_fitting(_columns(shown, width=width), width=width))
    table = Table()
    for column in columns:
        table.add_column(column.name, right=column.right, width=column.width)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    more = progress.node_count - len(shown)
    return [table, _more(counted(more, "more node"))] if more else [table]


def _columns(nodes: Sequence[NodeUse], *, width: int) -> Iterable[_Column]:
    """Yield what there is to say of *nodes*, the more important first."""
    bar = 16 if width >= WIDE else 8 if width >= MEDIUM else 0
    names = _texts("node", [node.name for node in nodes])
    yield _Column(names.name, names.cells, min(names.width, max(width // 3, LEAST_WIDTH)))
    yield _texts("pods", [str(node.pods) for node in nodes], right=True)
    yield _shares("cpu", [(n.cpu, n.cpu_allocatable) for n in nodes], bar=bar)
    yield _shares("memory", [(n.memory, n.memory_allocatable) for n in nodes], bar=bar)
    for name, texts in (
        ("zone", [node.zone for node in nodes]),
        ("devices", [_devices(node) for node in nodes]),
        ("taints", [", ".join(node.taints) for node in nodes]),
    ):
        if any(texts):
            yield _texts(name, texts)


def _fitting(columns: Iterable[_Column], *, width: int) -> Iterable[_Column]:
    """Yield the columns for which there is room, the last of them as wide as there is."""
    left = width
    for column in columns:
        given = min(column.width, left)
        if given < min(column.width, LEAST_WIDTH):
            return
        yield _Column(column.name, column.cells, given, column.right)
        left -= given + GAP


def _texts(name: str, texts: Sequence[str], *, right: bool = False) -> _Column:
    return _Column(name, texts, max(map(len, (name, *texts))), right)


def _shares(name: str, shares: Sequence[tuple[int, int]], *, bar: int) -> _Column:
    cells = [_bar(used, of, width=bar) for used, of in shares]
    return _Column(name, cells, max(len(name), bar + len(" 100%")), right=not bar)


def _bar(used: int, of: int, *, width: int) -> Styled:
    share = used / of if of else 0.0
    filled = min(round(share * width), width)
    style = "green" if share < 0.7 else "yellow" if share < 0.95 else "red"
    number = f" {share:4.0%}"
    if not width:
        return Styled((number, style))
    return Styled(("█" * filled, style), ("░" * (width - filled), "dim"), (number, ""))


def _devices(node: NodeUse) -> str:
    """Return extended resources without their domain, which all of one maker share."""
    return ", ".join(f"{name.rpartition('/')[2]} {used}/{of}" for name, used, of in node.devices)
