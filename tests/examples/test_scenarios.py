"""Every scenario of ``examples/scenarios`` does what its section says."""

from pathlib import Path

import pytest

from tests.embedded.scenario.running import run_file

FOLDER = Path(__file__).parents[2] / "examples/scenarios"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_its_expectations_are_met(path: Path) -> None:
    result, lines = run_file(path)
    assert not result.failure, "\n".join(lines)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_it_says_how_it_is_run(path: Path) -> None:
    command = f"berth up --scenario examples/scenarios/{path.name} --exit"
    assert command in path.read_text("utf-8")
