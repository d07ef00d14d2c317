"""Which tolerations put up with which taints (spec §5.5)."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.node import Taint
from berth.kube.objects.pod import Toleration
from berth.kube.objects.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE_TAINT,
    tolerates,
    untolerated,
)
from tests.builders import taint, toleration

GPU = taint("gpu", "old")


@pytest.mark.parametrize(
    ("a_toleration", "a_taint", "want"),
    [
        pytest.param(Toleration(key="gpu", value="old"), GPU, True, id="no operator means Equal"),
        pytest.param(toleration("gpu", "old"), GPU, True, id="equal"),
        pytest.param(toleration("gpu", "new"), GPU, False, id="another value"),
        pytest.param(toleration("disk", "old"), GPU, False, id="another key"),
        pytest.param(toleration("gpu"), GPU, True, id="the key exists"),
        pytest.param(toleration("disk"), GPU, False, id="another key exists"),
        pytest.param(toleration(), GPU, True, id="any key"),
        pytest.param(toleration("", "old", operator="Equal"), GPU, True, id="any key, this value"),
        pytest.param(toleration("", "new", operator="Equal"), GPU, False, id="any key, not value"),
        pytest.param(toleration("gpu", effect=NO_SCHEDULE), GPU, True, id="the effect"),
        pytest.param(toleration("gpu", effect=NO_EXECUTE), GPU, False, id="another effect"),
        pytest.param(toleration("gpu", operator="Like"), GPU, False, id="an unknown operator"),
        pytest.param(
            toleration("n", "5", operator="Gt"), taint("n", "6"), False, id="Gt needs the gate"
        ),
        pytest.param(
            toleration("node.kubernetes.io/unschedulable"), UNSCHEDULABLE_TAINT, True, id="cordoned"
        ),
    ],
)
def test_tolerates(a_toleration: Toleration, a_taint: Taint, want: bool) -> None:
    assert tolerates(a_toleration, a_taint) is want


@pytest.mark.parametrize(
    ("operator", "bound", "number", "want"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "5", "-10", True),
        ("Lt", "5", "x", False),
        ("Lt", "x", "5", False),
        ("Lt", "5", str(-(2**63) - 1), False),
    ],
)
def test_comparisons_with_the_gate(operator: str, bound: str, number: str, want: bool) -> None:
    a_toleration = toleration("n", bound, operator=operator)
    assert tolerates(a_toleration, taint("n", number), comparisons=True) is want
    assert untolerated([taint("n", number)], [a_toleration], effects=[NO_SCHEDULE])


HARD, SOFT, EVICTING = (
    taint("a"),
    taint("b", effect=PREFER_NO_SCHEDULE),
    taint("c", effect=NO_EXECUTE),
)


@pytest.mark.parametrize(
    ("tolerations", "effects", "want"),
    [
        pytest.param([], [NO_SCHEDULE, NO_EXECUTE], HARD, id="the first one"),
        pytest.param([toleration("a")], [NO_SCHEDULE, NO_EXECUTE], EVICTING, id="the next one"),
        pytest.param([], [PREFER_NO_SCHEDULE], SOFT, id="of these effects only"),
        pytest.param(
            [toleration("c"), toleration("a")], [NO_SCHEDULE, NO_EXECUTE], None, id="none"
        ),
        pytest.param([], [], None, id="no effect asked for"),
    ],
)
def test_untolerated(
    tolerations: Sequence[Toleration], effects: Sequence[str], want: Taint | None
) -> None:
    assert untolerated([SOFT, HARD, EVICTING], tolerations, effects=effects) == want
