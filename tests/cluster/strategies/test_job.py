"""Jobs: what the server fills in, and what it refuses."""

import copy
from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

STRATEGY = find("batch", "v1", "jobs").strategy
POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
TEMPLATE: Object = {"spec": POD}
LABELS = {
    "batch.kubernetes.io/controller-uid": "u",
    "controller-uid": "u",
    "batch.kubernetes.io/job-name": "x",
    "job-name": "x",
}


def job(*, name: str = "x", **spec: Any) -> Object:
    """A Job as it is stored, valid or not."""
    obj: Object = {
        "metadata": {"name": name, "uid": "u", "namespace": "default"},
        "spec": copy.deepcopy({"template": TEMPLATE, **spec}),
    }
    STRATEGY.default(obj)
    STRATEGY.prepare(obj, None)
    return obj


def refused(new: Object, old: Object | None = None) -> dict[str, str]:
    return {each.field: each.message for each in STRATEGY.validate(new, old)}


def test_it_selects_the_pods_that_it_makes() -> None:
    obj = job()
    spec = obj["spec"]
    assert refused(obj) == {}
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert spec["template"]["metadata"]["labels"] == LABELS


def failure_rules(*rules: Object) -> Object:
    return {"podFailurePolicy": {"rules": list(rules)}}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(
            {},
            {
                "completions": 1,
                "parallelism": 1,
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "suspend": False,
                "manualSelector": False,
                "podReplacementPolicy": "TerminatingOrFailed",
            },
            id="everything",
        ),
        pytest.param({"parallelism": 3}, {"completions": None}, id="a queue has no completions"),
        pytest.param({"completions": 3}, {"parallelism": 1}, id="one after the other"),
        pytest.param(
            {"completionMode": "Indexed", "backoffLimitPerIndex": 1},
            {"backoffLimit": 2**31 - 1},
            id="with a limit per index there is none in total",
        ),
        pytest.param(
            failure_rules({"action": "Count", "onPodConditions": [{"type": "A"}]}),
            {
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {
                    "rules": [
                        {"action": "Count", "onPodConditions": [{"type": "A", "status": "True"}]}
                    ]
                },
            },
            id="a policy on failures waits for pods to have failed",
        ),
    ],
)
def test_defaults(given: Object, want: Object) -> None:
    obj = job(**given)
    assert refused(obj) == {}
    assert {key: obj["spec"].get(key) for key in want} == want


def test_its_labels_are_those_of_its_pods() -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"app": "a"}}}
    assert job(template=template)["metadata"]["labels"] == {"app": "a"}


RULES = "spec.podFailurePolicy.rules"
SUCCESS = "spec.successPolicy.rules"


def success_rules(*rules: Object) -> Object:
    policy = {"rules": list(rules)}
    return {"completions": 3, "completionMode": "Indexed", "successPolicy": policy}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"template": {"spec": {**POD, "restartPolicy": "Always"}}},
            {
                "spec.template.spec.restartPolicy": "Required value: valid values: "
                '"OnFailure", "Never"'
            },
            id="pods that do not end",
        ),
        pytest.param(
            {"backoffLimit": -1, "ttlSecondsAfterFinished": -2},
            {
                "spec.backoffLimit": "Invalid value: -1: must be greater than or equal to 0",
                "spec.ttlSecondsAfterFinished": "Invalid value: -2: "
                "must be greater than or equal to 0",
            },
            id="negative numbers",
        ),
        pytest.param(
            {"parallelism": 2, "completionMode": "Indexed"},
            {"spec.completions": "Required value: when completion mode is Indexed"},
            id="indexes without a number of them",
        ),
        pytest.param(
            {"backoffLimitPerIndex": 1},
            {"spec.backoffLimitPerIndex": "Invalid value: 1: requires indexed completion mode"},
            id="a limit per index without indexes",
        ),
        pytest.param(
            {"completions": 2, "completionMode": "Indexed", "maxFailedIndexes": 3},
            {
                "spec.backoffLimitPerIndex": "Required value: when maxFailedIndexes is specified",
                "spec.maxFailedIndexes": "Invalid value: 3: "
                "must be less than or equal to completions",
            },
            id="more failed indexes than there are",
        ),
        pytest.param(
            {"template": {**TEMPLATE, "metadata": {"labels": {**LABELS, "job-name": "y"}}}},
            {
                "spec.template.metadata.labels[job-name]": 'Invalid value: {"batch.kubernetes.io/'
                'controller-uid":"u","controller-uid":"u","batch.kubernetes.io/job-name":"x",'
                '"job-name":"y"}: must be \'x\''
            },
            id="the label of another job",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"job-name": "z"}}, "manualSelector": True},
            {
                "spec.template.metadata.labels": "Invalid value: null: "
                "`selector` does not match template `labels`"
            },
            id="a selector of its own that selects nothing of its own",
        ),
        pytest.param(
            failure_rules({"action": "Ignore"}),
            {
                f"{RULES}[0]": "Invalid value: specifying one of OnExitCodes and "
                "OnPodConditions is required"
            },
            id="a rule about nothing",
        ),
        pytest.param(
            failure_rules(
                {
                    "action": "FailIndex",
                    "onExitCodes": {"operator": "In", "values": [3, 0, 3], "containerName": "z"},
                }
            ),
            {
                f"{RULES}[0].action": 'Invalid value: "FailIndex": '
                "requires the backoffLimitPerIndex to be set",
                f"{RULES}[0].onExitCodes.containerName": 'Invalid value: "z": must be one of the '
                "container or initContainer names in the pod template",
                f"{RULES}[0].onExitCodes.values": "Invalid value: [3,0,3]: must be ordered",
                f"{RULES}[0].onExitCodes.values[1]": "Invalid value: 0: "
                "must not be 0 for the In operator",
                f"{RULES}[0].onExitCodes.values[2]": "Duplicate value: 3",
            },
            id="a rule with all that can be wrong with exit codes",
        ),
        pytest.param(
            {
                **failure_rules({"action": "Count", "onPodConditions": [{"type": "A"}]}),
                "podReplacementPolicy": "TerminatingOrFailed",
                "template": {"spec": {**POD, "restartPolicy": "OnFailure"}},
            },
            {
                "spec.podReplacementPolicy": 'Unsupported value: "TerminatingOrFailed": '
                'supported values: "Failed"',
                "spec.template.spec.restartPolicy": 'Invalid value: "OnFailure": only "Never" '
                "is supported when podFailurePolicy is specified",
            },
            id="a policy on failures that nobody would see",
        ),
        pytest.param(
            {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            {
                "spec.successPolicy": "Invalid value: "
                '{"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: '
                "requires indexed completion mode"
            },
            id="a policy on success without indexes",
        ),
        pytest.param(
            success_rules({"succeededIndexes": "0-1", "succeededCount": 3}),
            {
                f"{SUCCESS}[0].succeededCount": "Invalid value: 3: must be less than or equal to 2"
                " (the number of indexes in the specified succeededIndexes field)"
            },
            id="more successes than indexes that may have them",
        ),
        pytest.param(
            success_rules({"succeededIndexes": "1-x"}, {}),
            {
                f"{SUCCESS}[0].succeededIndexes": 'Invalid value: "1-x": error parsing '
                'succeededIndexes: cannot convert string to integer for index: "1-x"',
                f"{SUCCESS}[1]": "Required value: at least one of succeededCount or "
                "succeededIndexes must be specified",
            },
            id="no indexes, no count",
        ),
    ],
)
def test_what_is_refused(spec: Object, want: dict[str, str]) -> None:
    assert refused(job(**spec)) == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("kueue.x-k8s.io/multikueue", [], id="a controller of ours"),
        pytest.param("", ["Required value"], id="none"),
        pytest.param(
            "kueue", ['Invalid value: "kueue": must be a domain-prefixed path (such as '
            '"acme.io/foo")'], id="nobody's",
        ),
        pytest.param(
            "a.b/c d", ['Invalid value: "c d": Invalid path (regex used for validation is '
            "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"], id="no path",
        ),
        pytest.param(
            "a.b/" + "c" * 60, ["Too long: may not be more than 63 bytes"], id="a long one"
        ),
    ],
)  # fmt: skip
def test_the_name_of_its_controller(name: str, want: list[str]) -> None:
    found = STRATEGY.validate(job(managedBy=name), None)
    assert [each.message for each in found if each.field == "spec.managedBy"] == want


def test_hosts_are_named_after_indexed_jobs() -> None:
    name = "x" * 62
    assert refused(job(name=name, completions=10, completionMode="Indexed")) == {
        "metadata.name": f'Invalid value: "{name}": will not able to create pod with invalid '
        f"DNS label: {name}-9"
    }


def changed(**spec: Any) -> Object:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("old", "change", "fields"),
    [
        pytest.param({}, {"parallelism": 2, "suspend": True}, [], id="more at a time, or none"),
        pytest.param({}, {"completions": 2}, ["spec.completions"], id="more in all"),
        pytest.param({}, {"completionMode": "Indexed"}, ["spec.completionMode"], id="indexes"),
        pytest.param(
            {"completions": 2, "parallelism": 2, "completionMode": "Indexed"},
            {"completions": 3, "parallelism": 3},
            [],
            id="an elastic job grows",
        ),
        pytest.param(
            {"completions": 2, "parallelism": 2, "completionMode": "Indexed"},
            {"completions": 3},
            ["spec.completions"],
            id="an elastic job grows on one side",
        ),
        pytest.param({}, {"managedBy": "a.b/c"}, ["spec.managedBy"], id="another controller"),
    ],
)
def test_what_may_change(old: Object, change: Object, fields: list[str]) -> None:
    before = job(**old)
    after = copy.deepcopy(before)
    after["spec"] |= change
    assert list(refused(after, before)) == fields


@pytest.mark.parametrize(
    ("suspended", "change", "fields"),
    [
        pytest.param(False, {"nodeSelector": {"a": "b"}}, ["spec.template"], id="while it runs"),
        pytest.param(True, {"nodeSelector": {"a": "b"}}, [], id="where it is to run"),
        pytest.param(True, {"affinity": {"nodeAffinity": {}}}, [], id="affinity to nodes"),
        pytest.param(
            True, {"affinity": {"podAffinity": {}}}, ["spec.template"], id="affinity to pods"
        ),
        pytest.param(True, {"hostNetwork": True}, ["spec.template"], id="what it is"),
    ],
)
def test_a_queue_may_direct_a_suspended_job(
    suspended: bool, change: Object, fields: list[str]
) -> None:
    before = job(suspend=suspended)
    after = copy.deepcopy(before)
    after["spec"]["template"]["spec"] |= change
    assert list(refused(after, before)) == fields


SUSPENDED = [{"type": "Suspended", "status": "True"}]


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        pytest.param({}, [], id="it has never begun"),
        pytest.param({"startTime": "2026-01-01T00:00:00Z"}, ["spec.template"], id="it has begun"),
        pytest.param(
            {"startTime": "2026-01-01T00:00:00Z", "conditions": SUSPENDED}, [],
            id="it has been suspended since",
        ),
        pytest.param({"active": 1, "conditions": SUSPENDED}, ["spec.template"], id="a pod is left"),
    ],
)  # fmt: skip
def test_when_a_queue_may_direct_a_suspended_job(status: Object, fields: list[str]) -> None:
    before = {**job(suspend=True), "status": status}
    after = copy.deepcopy(before)
    after["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    assert list(refused(after, before)) == fields
