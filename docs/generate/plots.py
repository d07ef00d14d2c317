"""The plots of ``docs/performance.md``: measures what they show, and draws it.

::

    berth bench ... --output json  -->  docs/bench/NAME.jsonl  -->  docs/bench/NAME.svg

``make bench-docs`` measures all, ``make bench-docs ONLY="NAME NAME"`` some of them again, and
``python -m docs.generate.plots --draw`` only draws.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.tools.bench.results import Record

FOLDER: Final = Path(__file__).parents[1] / "bench"
BERTH: Final = (sys.executable, "-m", "berth")
INCHES: Final = 7.5
GREY: Final = "#808080"
"""For text and axes: readable on white and on black."""
COLOURS: Final = ("#3b82f6", "#f97316", "#22a06b", "#a855f7", "#e11d48", "#0891b2")
MARKERS: Final = "osD^vX"
"""Besides colours, so that lines can be told apart without."""
VARIANT: Final = ", replicas"
"""The end of names of figures that are drawn as the figure without it, but dashed."""


@dataclass(frozen=True, slots=True)
class Plot:
    """What is measured and drawn under one name."""

    name: str
    command: str
    """Of ``berth bench``."""
    title: str
    unit: str
    figures: str = ""
    """What the names of figures begin with that are drawn; they are in *unit*, too."""
    axis: str = ""
    """The parameter on the horizontal axis; without, a bar for each figure."""
    label: Callable[[Record], str] = lambda record: record.name

    @property
    def data(self) -> Path:
        return FOLDER / f"{self.name}.jsonl"

    @property
    def picture(self) -> Path:
        return FOLDER / f"{self.name}.svg"

    def records(self) -> list[Record]:
        """Read what was measured and is drawn."""
        lines = self.data.read_text("utf-8").splitlines()
        records = [msgspec.json.decode(line, type=Record) for line in lines]
        return [
            record
            for record in records
            if record.unit == self.unit and record.name.startswith(self.figures)
        ]


def _with_workload(record: Record) -> str:
    return str(record.at.get("workload", record.name))


PLOTS: Final = (
    Plot(
        "scale-nodes",
        "scale --nodes 1000,5000,20000,50000,130000 --pods 10000 --runs 5",
        "CPU time of a decision, 10,000 running pods",
        "µs",
        axis="nodes",
    ),
    Plot(
        "scale-pods",
        "scale --nodes 5000 --pods 1000,10000,50000,150000 --runs 5",
        "CPU time of a decision, 5,000 nodes",
        "µs",
        axis="pods",
    ),
    Plot(
        "throughput",
        "throughput --workload all --runs 3",
        "CPU time of the scheduler per bound pod, 5,000 nodes",
        "ms",
        label=lambda record: (
            f"{_with_workload(record)}, with start"
            if record.name.endswith("start")
            else _with_workload(record)
        ),
    ),
    Plot(
        "watch",
        "watch --rate 2000",
        "CPU time of the scheduler per watch event, 5,000 nodes, 50,000 pods",
        "µs",
        label=lambda record: str(record.at["kind"]),
    ),
    Plot("startup", "startup --runs 5", "Start of a scheduler process, 5,000 nodes", "ms"),
    Plot(
        "preemption",
        "preemption --preemptors 1000",
        "CPU time of the scheduler per preempting pod, 5,000 nodes, 20,000 victims",
        "ms",
    ),
    Plot(
        "steady",
        "steady --rate 300 --seconds 60",
        "From creation to bind at 300 pods per second, 5,000 nodes",
        "ms",
        "create to bound",
    ),
)


def measure(plot: Plot) -> None:
    """Run the command of *plot* and keep what it prints; CalledProcessError if it fails."""
    command = [*BERTH, "bench", *plot.command.split(), "--output", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    FOLDER.mkdir(exist_ok=True)
    plot.data.write_bytes(done.stdout)


def draw(plot: Plot, picture: Path) -> None:
    """Draw what was measured to *picture*; the same data gives the same file."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "berth",  # text stays text
        "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY,
        "xtick.color": GREY, "ytick.color": GREY, "grid.color": GREY, "grid.alpha": 0.3,
    })  # fmt: skip
    records = plot.records()
    height = 4.2 if plot.axis else 1.2 + 0.32 * len(records)
    figure, axes = pyplot.subplots(figsize=(INCHES, height), layout="constrained")
    if plot.axis:
        _lines(axes, plot, records)
    else:
        _bars(axes, plot, records)
    axes.set_title(plot.title, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(picture, transparent=True, metadata={"Date": None})
    pyplot.close(figure)


def _lines(axes: Any, plot: Plot, records: Sequence[Record]) -> None:
    """Medians against the parameter, with a band from the least to the most."""
    names = dict.fromkeys(map(plot.label, records))
    kinds = list(dict.fromkeys(name.removesuffix(VARIANT) for name in names))
    for name in names:
        number = kinds.index(name.removesuffix(VARIANT)) % len(COLOURS)
        colour, marker = COLOURS[number], MARKERS[number]
        line = "--" if name.endswith(VARIANT) else "-"
        mine = [record for record in records if plot.label(record) == name]
        at = [record.at[plot.axis] for record in mine]
        medians = [record.median for record in mine]
        axes.plot(at, medians, line, color=colour, marker=marker, markersize=4, label=name)
        least, most = [each.min for each in mine], [each.max for each in mine]
        axes.fill_between(at, least, most, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    ticks = list(dict.fromkeys(record.at[plot.axis] for record in records))
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(f"number of {plot.axis}, logarithmic")
    axes.set_ylabel(f"median, {plot.unit}")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True)
    axes.legend(frameon=False, fontsize="small", loc="upper left")


def _bars(axes: Any, plot: Plot, records: Sequence[Record]) -> None:
    """A bar for each median, with a line from the least to the most, and a mark at the target."""
    names = [plot.label(record) for record in records]
    medians = [record.median for record in records]
    ranges = [
        [record.median - record.min for record in records],
        [record.max - record.median for record in records],
    ]
    axes.barh(names, medians, xerr=ranges, color=COLOURS[0], ecolor=GREY, height=0.6)
    for name, record in zip(names, records, strict=True):
        axes.annotate(
            f"{record.median:.3g}", (record.max, name), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize="small",
        )  # fmt: skip
    axes.invert_yaxis()
    axes.set_xlabel(f"median, {plot.unit}")
    axes.grid(visible=True, axis="x")
    axes.set_axisbelow(True)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generate.plots")
    parser.add_argument("--draw", action="store_true", help="draw what was measured before")
    parser.add_argument("only", nargs="*", metavar="NAME", help="default: all")
    given = parser.parse_args(argv)
    return sum(not _made(plot, given.draw) for plot in _chosen(given.only)) and 1


def _chosen(names: Sequence[str]) -> Iterable[Plot]:
    if unknown := set(names) - {plot.name for plot in PLOTS}:
        raise SystemExit(f"no such plot: {', '.join(sorted(unknown))}")
    return (plot for plot in PLOTS if not names or plot.name in names)


def _made(plot: Plot, is_drawn_only: bool) -> bool:
    """Measure and draw; one that fails is told of, and its old files stay."""
    sys.stderr.write(f"{plot.name}: berth bench {plot.command}\n")
    try:
        if not is_drawn_only:
            measure(plot)
    except subprocess.CalledProcessError as exc:
        sys.stderr.write(f"{plot.name}: not measured, status {exc.returncode}\n")
        return False
    draw(plot, plot.picture)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
