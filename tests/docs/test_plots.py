"""The plots of the page about performance: measured by commands that exist, drawn from the data."""

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from berth.cli import bench
from docs.generate.plots import PLOTS, Plot, draw, main
from tests.docs.pages import DOCS, Page

PAGE = Page(DOCS / "performance.md")
CELLS = re.compile(r"(?<!\\)\|")


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_plot_has_data_of_its_bench(plot: Plot) -> None:
    records = plot.records()
    assert records
    assert {record.bench for record in records} == {plot.command.split()[0]}
    assert {record.unit for record in records} == {plot.unit}
    assert all(plot.axis in record.at for record in records if plot.axis)


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_the_command_of_a_plot_exists_and_is_on_the_page(plot: Plot) -> None:
    assert bench.parse(plot.command.split()).what == plot.command.split()[0]
    assert f"bench/{plot.picture.name}" in PAGE.text
    assert f"`berth bench {plot.command}`" in PAGE.text


@pytest.mark.slow
@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_picture_is_drawn_from_its_data(plot: Plot, tmp_path: Path) -> None:
    draw(plot, tmp_path / "again.svg")
    again = (tmp_path / "again.svg").read_text("utf-8")
    assert plot.picture.read_text("utf-8") == again, "python -m docs.generate.plots --draw"
    texts = [each.text for each in ElementTree.fromstring(again).iter() if each.text]
    assert plot.title in texts
    assert f"median, {plot.unit}" in texts


def test_files_without_a_plot_are_gone() -> None:
    named = {path for plot in PLOTS for path in (plot.data, plot.picture)}
    assert set((DOCS / "bench").iterdir()) == named


def test_rows_of_the_tables_name_commands_that_exist() -> None:
    rows = [CELLS.split(line) for line in PAGE.text.splitlines() if line.startswith("| ")]
    commands = [code for row in rows for code in re.findall(r"`(berth bench [^`]*)`", row[-2])]
    assert len(commands) > 10
    for command in commands:
        assert bench.parse(shlex.split(command)[2:]).what in command


def test_a_plot_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SystemExit, match="no such plot: nothing"):
        main(["--draw", "nothing"])
