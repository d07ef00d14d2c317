"""PodTopologySpread: its args, as they are read, refused and written again."""

import json

import pytest
from pydantic import ValidationError

from berth.scheduler.config.defaults import complete_args
from berth_plugins.pod_topology_spread.plugin import PodTopologySpreadArgs
from tests.builders import ZONE


def constraint(**fields: object) -> dict[str, object]:
    return {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **fields}


def listed(*constraints: dict[str, object]) -> dict[str, object]:
    return {"defaultConstraints": list(constraints), "defaultingType": "List"}


@pytest.mark.parametrize(
    ("args", "where", "message"),
    [
        pytest.param(
            listed(constraint(), constraint(maxSkew=0)),
            ("defaultConstraints", 1, "maxSkew"),
            "greater than or equal to 1",
            id="a skew of none",
        ),
        pytest.param(
            listed({"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}),
            ("defaultConstraints", 0, "maxSkew"),
            "required",
            id="no skew",
        ),
        pytest.param(
            listed(constraint(maxSkew=2**31)),
            ("defaultConstraints", 0, "maxSkew"),
            "less than 2147483648",
            id="a skew beyond int32",
        ),
        pytest.param(
            listed({"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}),
            ("defaultConstraints", 0, "topologyKey"),
            "required",
            id="no topology key",
        ),
        pytest.param(
            listed(constraint(topologyKey="")),
            ("defaultConstraints", 0, "topologyKey"),
            "not a label key",
            id="an empty topology key",
        ),
        pytest.param(
            listed(constraint(topologyKey="a b")),
            ("defaultConstraints", 0, "topologyKey"),
            "not a label key",
            id="a topology key that is none",
        ),
        pytest.param(
            listed({"maxSkew": 1, "topologyKey": ZONE}),
            ("defaultConstraints", 0, "whenUnsatisfiable"),
            "required",
            id="nothing to do when unsatisfiable",
        ),
        pytest.param(
            listed(constraint(whenUnsatisfiable="Panic")),
            ("defaultConstraints", 0, "whenUnsatisfiable"),
            "'DoNotSchedule' or 'ScheduleAnyway'",
            id="an unknown thing to do when unsatisfiable",
        ),
        pytest.param(
            listed(constraint(labelSelector={})),
            ("defaultConstraints", 0, "labelSelector"),
            "Forbidden",
            id="a selector",
        ),
        pytest.param(
            listed(constraint(nodeTaintsPolicy="Hate")),
            ("defaultConstraints", 0, "nodeTaintsPolicy"),
            "'Honor' or 'Ignore'",
            id="an unknown policy",
        ),
        pytest.param(
            listed(constraint(), constraint(whenUnsatisfiable="ScheduleAnyway"), constraint()),
            ("defaultConstraints",),
            rf"defaultConstraints\[2\]: Duplicate value: {ZONE}, DoNotSchedule",
            id="the same key and action twice",
        ),
        pytest.param(
            {"defaultConstraints": [constraint()]},
            (),
            "defaultingType: Invalid value: 'System'",
            id="constraints beside those of the system",
        ),
        pytest.param(
            {"defaultingType": "None"},
            ("defaultingType",),
            "'System' or 'List'",
            id="an unknown type",
        ),
    ],
)
def test_args_that_are_refused(
    args: dict[str, object], where: tuple[str | int, ...], message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as refused:
        PodTopologySpreadArgs.model_validate_json(json.dumps(args))
    assert [error["loc"] for error in refused.value.errors()] == [where]


@pytest.mark.parametrize(
    ("args", "written"),
    [
        pytest.param({}, {"defaultingType": "System"}, id="defaults"),
        pytest.param(
            {"defaultingType": "List"}, {"defaultingType": "List"}, id="a list of nothing"
        ),
        pytest.param(
            listed(constraint(), constraint(whenUnsatisfiable="ScheduleAnyway", minDomains=2)),
            listed(constraint(), constraint(whenUnsatisfiable="ScheduleAnyway", minDomains=2)),
            id="a list",
        ),
        pytest.param(
            listed(constraint(nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor")),
            listed(constraint(nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor")),
            id="policies",
        ),
    ],
)
def test_args_are_written_as_configz_does(
    args: dict[str, object], written: dict[str, object]
) -> None:
    assert complete_args("PodTopologySpread", args, PodTopologySpreadArgs) == {
        "kind": "PodTopologySpreadArgs",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        **written,
    }
