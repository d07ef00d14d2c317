"""The labs that are examples can be read, with the plugins of their policies."""

from pathlib import Path

import pytest

from berth.tools.lab.load import LabFile

LABS = sorted(Path("examples/lab").glob("*.yaml"))


@pytest.mark.parametrize("path", LABS, ids=[path.stem for path in LABS])
def test_policies_and_plugins_of_a_lab_are_known(path: Path) -> None:
    file = LabFile(path)
    names = [policy.name for policy in file.policies()]
    assert len(names) == len(set(names)) >= 2
