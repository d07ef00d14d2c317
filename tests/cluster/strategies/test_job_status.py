"""What the status of a Job may become, whoever writes it."""

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

STRATEGY = find("batch", "v1", "jobs").strategy
START, LATER, EARLIER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2025-12-31T00:00:00Z"
INDEXED: Object = {"completionMode": "Indexed", "completions": 5, "parallelism": 2}
COUNTED: Object = {**INDEXED, "backoffLimitPerIndex": 1}
NOTED: Object = {"uncountedTerminatedPods": {"failed": ["a"]}}


def true(*types: str) -> Object:
    return {"conditions": [{"type": each, "status": "True"} for each in types]}


COMPLETE: Object = {
    **true("SuccessCriteriaMet", "Complete"),
    "startTime": START,
    "completionTime": LATER,
}
FAILED: Object = {**true("FailureTarget", "Failed"), "startTime": START}


def refused(spec: Object, old: Object, new: Object) -> list[str]:
    before = {"metadata": {"name": "j"}, "spec": spec, "status": old}
    found = STRATEGY.validate_status({**before, "status": new}, before)
    return [f"{each.field.removeprefix('status.')}: {each.message}" for each in found]


@pytest.mark.parametrize(
    ("spec", "old", "new"),
    [
        pytest.param({}, {}, {"startTime": START, "active": 2, "ready": 1}, id="it begins"),
        pytest.param({}, {"startTime": START}, COMPLETE, id="it completes"),
        pytest.param({}, {"startTime": START}, FAILED, id="it fails"),
        pytest.param({"suspend": True}, {"startTime": START}, {}, id="it is suspended"),
        pytest.param(
            {}, {"startTime": START, **true("Suspended")},
            {"startTime": LATER, "conditions": [{"type": "Suspended", "status": "False"}]},
            id="it is resumed by one that had kept its time",
        ),
        pytest.param(
            COUNTED, {}, {"completedIndexes": "0-1,4", "failedIndexes": "2"}, id="it counts"
        ),
        pytest.param(
            {**INDEXED, "parallelism": 5}, {"succeeded": 6}, {"succeeded": 5}, id="it shrinks"
        ),
        pytest.param(
            {}, true("Complete", "Failed"), true("Complete", "Failed"), id="it was wrong before"
        ),
    ],
)  # fmt: skip
def test_what_a_status_may_become(spec: Object, old: Object, new: Object) -> None:
    assert refused(spec, old, new) == []


NOT_NEGATIVE = "must be greater than or equal to 0"


@pytest.mark.parametrize(
    ("spec", "old", "new", "want"),
    [
        pytest.param({}, {}, {"failed": -1, "terminating": -2},
            [f"failed: Invalid value: -1: {NOT_NEGATIVE}",
             f"terminating: Invalid value: -2: {NOT_NEGATIVE}",
             "failed: Invalid value: -1: cannot decrease the failed counter"],
            id="less than nothing"),
        pytest.param({}, {"succeeded": 2, "failed": 1}, {},
            ["failed: Invalid value: 0: cannot decrease the failed counter",
             "succeeded: Invalid value: 0: cannot decrease the succeeded counter"],
            id="what has been counted is forgotten"),
        pytest.param({}, {}, {"active": 1, "ready": 2},
            ["ready: Invalid value: 2: cannot set more ready pods than active"],
            id="more are ready than there are"),
        pytest.param({}, {}, {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            ['uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
             'uncountedTerminatedPods.failed[0]: Duplicate value: "a"'], id="counted twice"),
        pytest.param({}, {"startTime": START}, {**COMPLETE, **true("SuccessCriteriaMet",
            "Complete", "FailureTarget", "Failed")},
            [f"conditions: Invalid value: cannot set {each} conditions" for each in (
                "Complete=True and Failed=true", "Complete=True and FailureTarget=true",
                "SuccessCriteriaMet=True and Failed=true",
                "SuccessCriteriaMet=True and FailureTarget=true")], id="both"),
        pytest.param({}, {"startTime": START}, {**COMPLETE, **true("Complete")},
            ["conditions: Invalid value: cannot set Complete=True condition without the "
             "SuccessCriteriaMet=true condition"], id="out of the blue"),
        pytest.param({}, FAILED, {**FAILED, "conditions": []},
            ["conditions: Invalid value: cannot disable the terminal Failed=True condition",
             "conditions: Invalid value: cannot disable the terminal FailureTarget=True condition"],
            id="it is revived"),
        pytest.param({}, true("SuccessCriteriaMet"), {},
            ["conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition"],
            id="success is taken back"),
        pytest.param({}, {"startTime": START}, {"startTime": START, "completionTime": LATER},
            [f'completionTime: Invalid value: "{LATER}": cannot set completionTime when there is '
             "no Complete=True condition"], id="a time without an end"),
        pytest.param({}, {"startTime": START}, {**COMPLETE, "completionTime": None},
            ["completionTime: Required value: completionTime is required for Complete jobs"],
            id="an end without a time"),
        pytest.param({}, {"startTime": START}, {**COMPLETE, "completionTime": EARLIER},
            [f'completionTime: Invalid value: "{EARLIER}": completionTime cannot be set before '
             "startTime"], id="it ends before it begins"),
        pytest.param({}, COMPLETE, {**COMPLETE, "completionTime": "2026-01-01T02:00:00Z"},
            ['completionTime: Invalid value: "2026-01-01T02:00:00Z": completionTime cannot be '
             "mutated"], id="it ends again"),
        pytest.param({}, {"startTime": START}, {"startTime": LATER},
            ["startTime: Required value: startTime cannot be removed for unsuspended job"],
            id="it begins again"),
        pytest.param({}, {}, {**true("FailureTarget", "Failed"), "active": 1, "terminating": 2,
            **NOTED},
            ["active: Invalid value: 1: active>0 is invalid for finished job",
             "terminating: Invalid value: 2: terminating>0 is invalid for finished job",
             "startTime: Required value: startTime is required for finished job",
             'uncountedTerminatedPods: Invalid value: {"failed":["a"]}: uncountedTerminatedPods '
             "needs to be empty for finished job"], id="it ends before its pods do"),
        pytest.param({}, {}, {"completedIndexes": "0", "failedIndexes": "1"},
            ['completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when '
             "non-indexed completion mode",
             'failedIndexes: Invalid value: "1": cannot set non-null failedIndexes when '
             "backoffLimitPerIndex is null"], id="indexes of what has none"),
        pytest.param(COUNTED, {}, {"completedIndexes": "3,1", "failedIndexes": "4-7"},
            ['completedIndexes: Invalid value: "3,1": error parsing completedIndexes: '
             "non-increasing order, previous: 3, current: 1",
             'failedIndexes: Invalid value: "4-7": error parsing failedIndexes: too large index: '
             '"7"'], id="indexes in disorder, or that there are not"),
        pytest.param(COUNTED, {}, {"completedIndexes": "0-2", "failedIndexes": "2-3"},
            ['failedIndexes: Invalid value: "2-3": failedIndexes and completedIndexes overlap at '
             "index: 2"], id="an index that has failed and succeeded"),
    ],
)  # fmt: skip
def test_what_a_status_must_not_become(
    spec: Object, old: Object, new: Object, want: list[str]
) -> None:
    assert refused(spec, old, new) == want
