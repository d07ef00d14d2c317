"""A whole run of the published experiment, with its random numbers."""

from pathlib import Path

import pytest

from berth.tools.lab.chance import GoChance
from berth.tools.lab.load import LabFile
from berth.tools.lab.run import run

SEED = 42
GPUS = "allocation of example.com/gpu-milli"


@pytest.mark.slow
def test_a_published_run_is_met_exactly() -> None:
    file = LabFile(Path("examples/lab/gpu-sharing.yaml"))
    (policy,) = (each for each in file.policies() if each.name == "FGD")
    result = run(policy, file.workload(), GoChance(SEED), file.terms(), seed=SEED)

    assert result.unplaced == 2532
    assert result.curves[GPUS][100] == 95.14
    assert result.curves[GPUS][130] == round(100 * 5_919_410 / 6_212_000, 2)
