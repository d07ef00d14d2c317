"""Figures of several runs are joined, and printed for people and as JSON lines."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from berth.tools.bench.results import (
    Figure,
    Machine,
    Record,
    as_json,
    as_row,
    figure,
    percentiles,
    repeated,
)

HERE = Machine(cpu="A CPU", cpus=2, python="3.11.7", berth="1.0")


async def test_figures_of_all_runs_are_joined_by_name_and_parameters() -> None:
    runs = iter(
        [
            [
                figure("took", 1.0, "ms", nodes=5, instructions=7.0, outcome="1/2 bound"),
                figure("took", 5.0, "ms", nodes=9),
            ],
            [
                figure("took", 3.0, "ms", nodes=5, instructions=9.0, outcome="2/2 bound"),
                figure("took", 4.0, "ms", nodes=9),
            ],
        ]
    )

    async def step() -> AsyncIterator[Figure]:
        for each in next(runs):
            yield each

    assert [each async for each in repeated(step, 2)] == [
        Figure("took", "ms", (1.0, 3.0), {"nodes": 5}, "2/2 bound", instructions=8.0),
        Figure("took", "ms", (5.0, 4.0), {"nodes": 9}),
    ]


def test_a_json_line_tells_everything() -> None:
    given = Figure("took", "ms", (3.0, 1.00000049, 7.0), {"nodes": 5}, "3/3 bound", at_most=2.0)
    line = as_json(given, bench="engine", command="berth bench engine", machine=HERE)
    assert "\n" not in line
    assert msgspec.json.decode(line, type=Record) == Record(
        bench="engine",
        name="took",
        at={"nodes": 5},
        unit="ms",
        median=3.0,
        min=1.0,
        max=7.0,
        values=(3.0, 1.0, 7.0),
        command="berth bench engine",
        machine=HERE,
        outcome="3/3 bound",
        at_most=2.0,
    )


PRINTED = [
    pytest.param(
        figure("took", 1234.5, "µs"), ["took", "1234", "1234", "1234", "µs"], id="one run"
    ),
    pytest.param(
        Figure("took", "ms", (0.25, 12.34, 1.5), {"nodes": 5, "kind": "a"}),
        ["took,", "nodes=5,", "kind=a", "1.50", "0.25", "12.3", "ms"],
        id="several runs, with parameters",
    ),
    pytest.param(
        Figure("took", "s", (0.0123,), {}, "3/3 bound", instructions=1.5e6, at_most=2.0),
        [
            *("took", "0.0123", "0.0123", "0.0123", "s"),
            *("target:", "2.00", "1.50", "M", "instructions", "3/3", "bound"),
        ],
        id="with all there can be",
    ),
]


@pytest.mark.parametrize(("given", "words"), PRINTED)
def test_a_row_has_median_least_and_most(given: Figure, words: list[str]) -> None:
    assert as_row(given).split() == words


def test_percentiles_are_in_milliseconds() -> None:
    seconds = [number / 1000 for number in range(101)]
    assert [
        (percentile.name, round(percentile.median, 9))
        for percentile in percentiles("wait", seconds)
    ] == [
        ("wait, p50", 50),
        ("wait, p90", 90),
        ("wait, p99", 99),
        ("wait, max", 100),
    ]
    assert [percentile.label for percentile in percentiles("wait", [0.5], nodes=3)] == [
        "wait, max, nodes=3"
    ]


def test_this_machine_is_named() -> None:
    here = Machine.here()
    assert here.cpu
    assert here.cpus >= 1
    assert here.python.count(".") == 2
