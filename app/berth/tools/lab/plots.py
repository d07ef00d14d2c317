"""A picture of each measure: the mean of each policy, with a band as wide as the spread.

matplotlib is an optional extra of the distribution, ``plots``; only this module knows it.
"""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from berth.tools.lab.errors import LabError
from berth.tools.lab.measures import UNITS
from berth.tools.lab.summary import PolicySummary

INCHES: Final = (7.0, 4.2)
STYLES: Final = ("-", "--", "-.", ":")
"""Besides colours, so that lines can be told apart without."""


def check_library() -> None:
    """Raise LabError if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise LabError("plots need matplotlib: pip install 'berth-scheduler[plots]'")


def draw(summaries: Sequence[PolicySummary], folder: Path, *, title: str) -> list[Path]:
    """Write an SVG of each measure to *folder*, and return them; LabError without matplotlib."""
    check_library()
    import matplotlib

    matplotlib.use("svg")
    # Text stays text, and the same data gives the same file.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "berth"})
    folder.mkdir(parents=True, exist_ok=True)
    names = dict.fromkeys(name for summary in summaries for name in summary.measured)
    return [_draw(summaries, name, folder / f"{_file_name(name)}.svg", title) for name in names]


def _draw(summaries: Sequence[PolicySummary], name: str, path: Path, title: str) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=INCHES, layout="constrained")
    for number, summary in enumerate(summaries):
        curve: Any = summary.measured.get(name, {})
        bins = list(curve)
        means = [curve[bin_].mean for bin_ in bins]
        (line,) = axes.plot(bins, means, STYLES[number % len(STYLES)], label=summary.policy)
        axes.fill_between(
            bins,
            [curve[bin_].mean - curve[bin_].deviation for bin_ in bins],
            [curve[bin_].mean + curve[bin_].deviation for bin_ in bins],
            color=line.get_color(),
            alpha=0.2,
            linewidth=0,
        )
    axes.set_xlabel(summaries[0].axis)
    axes.set_ylabel(name + UNITS.get(name, ", %"))
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path


def _file_name(measure: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", measure.lower()).strip("-")
