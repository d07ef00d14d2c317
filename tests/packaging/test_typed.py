"""Type checkers of those who write plugins read berth's annotations (PEP 561)."""

from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("package", ["berth", "berth_plugins"])
def test_the_wheel_says_that_a_package_is_typed(package: str) -> None:
    builder = WheelBuilder(str(REPOSITORY))
    packed = {file.distribution_path for file in builder.recurse_included_files()}

    assert f"{package}/__init__.py" in packed
    assert f"{package}/py.typed" in packed
