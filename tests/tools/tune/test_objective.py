"""Objectives: weighted sums within bounds."""

import pytest

from berth.tools.lab.errors import LabError
from berth.tools.tune.objective import Objective


def test_a_sum_of_what_is_to_be_low_and_high() -> None:
    objective = Objective({"cost": 2.0, "allocation": -1.0})

    assert objective.value({"cost": 3.0, "allocation": 10.0, "other": 99.0}) == -4.0
    assert objective.words == "less cost × 2 + more allocation"


def test_what_is_out_of_bounds_comes_after_all_that_is_not() -> None:
    objective = Objective({"cost": 1.0}, at_most={"waiting": 10}, at_least={"used": 5})
    cheap = [
        {"cost": 1.0, "waiting": 30.0, "used": 9.0},
        {"cost": 1.0, "waiting": 10.0, "used": 9.0},
    ]
    dear = [{"cost": 9.0, "waiting": waiting, "used": 5.0} for waiting in (12.0, 8.0)]
    idle = [{"cost": 1.0, "waiting": 0.0, "used": 1.0}]

    assert objective.excess(cheap) == {"waiting": 10.0}
    assert objective.excess(dear) == {}
    assert objective.excess(idle) == {"used": 4.0}
    assert sorted([cheap, idle, dear], key=objective.rank) == [dear, idle, cheap]


def test_a_measure_that_there_is_not_is_named() -> None:
    with pytest.raises(LabError, match="'costs': no measure of this workload: cost, waiting"):
        Objective({"costs": 1.0}).check(["waiting", "cost"])
