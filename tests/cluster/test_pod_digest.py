"""What columns and field selectors say of part of a pod is what they say of all of it."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from berth.cluster import views
from berth.cluster.http.tables import row
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.columns import PodDigest
from berth.cluster.resources import Object
from berth.cluster.storage.stored import Stored

PODS = find("", "v1", "pods")
UNDIGESTED = replace(PODS, digest=None)
NOW = 1_795_179_970.0
TIMES = st.sampled_from(["2026-11-20T13:06:10Z", "2026-11-20T13:01:00Z"])
NAMES = st.sampled_from(["a", "b"])
TEXTS = st.sampled_from(["", "x", "node-1", "Always"])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    """Return objects with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


states = some(
    running=some(startedAt=TIMES),
    waiting=some(reason=st.sampled_from(["CrashLoopBackOff", "PodInitializing", ""])),
    terminated=some(exitCode=st.integers(0, 1), reason=TEXTS, signal=st.just(9), finishedAt=TIMES),
)
statuses = st.lists(
    some(
        name=NAMES,
        ready=st.booleans(),
        started=st.booleans(),
        restartCount=st.integers(0, 2),
        state=states,
        lastState=states,
    ),
    max_size=2,
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES}, optional={"restartPolicy": TEXTS, "image": TEXTS, "env": st.just([{}])}
    ),
    max_size=2,
)
conditions = st.lists(
    some(
        type=st.sampled_from(["Ready", "PodScheduled", "Initialized", "gate"]),
        status=st.sampled_from(["True", "False"]),
        reason=st.sampled_from(["SchedulingGated", "other"]),
    ),
    max_size=3,
)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": NAMES, "namespace": NAMES},
            optional={
                "creationTimestamp": st.none() | TIMES,
                "deletionTimestamp": TIMES,
                "labels": st.just({"app": "a"}),
                "managedFields": st.just([{"manager": "m"}]),
            },
        )
    },
    optional={
        "spec": st.none()
        | some(
            containers=st.none() | containers,
            initContainers=st.none() | containers,
            readinessGates=st.lists(st.just({"conditionType": "gate"}), max_size=1),
            nodeName=TEXTS,
            restartPolicy=TEXTS,
            schedulerName=TEXTS,
            serviceAccountName=TEXTS,
            hostNetwork=st.booleans(),
            volumes=st.just([{"name": "v"}]),
        ),
        "status": st.none()
        | some(
            phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
            reason=st.sampled_from(["NodeLost", "Evicted"]),
            podIP=TEXTS,
            podIPs=st.lists(st.just({"ip": "10.0.0.1"}), max_size=2),
            nominatedNodeName=TEXTS,
            conditions=conditions,
            containerStatuses=statuses,
            initContainerStatuses=statuses,
        ),
    },
)


@given(pods)
def test_columns_and_selectors(pod: Object) -> None:
    stored, plain = Stored(pod, 1), Stored(pod, 1)
    whole, names = stored.decode(), tuple(PODS.selectable_fields)

    assert views.digest_of(PODS, stored).keys() <= PodDigest.__annotations__.keys()
    assert row(PODS, stored, "None", NOW) == row(UNDIGESTED, plain, "None", NOW)
    fields = views.fields_of(PODS, stored, names)
    assert fields == {name: PODS.selectable_fields[name](whole) for name in names}


def test_a_pod_of_another_shape_is_read_as_a_whole() -> None:
    stored = Stored({"metadata": {"name": "p"}, "spec": {"containers": "none"}}, 1)
    assert views.digest_of(PODS, stored)["spec"] == {"containers": "none"}
