"""Questions and snapshots as nobody should write them: the worker answers or says what is wrong."""

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.service.server.scheduler.simulation_process import SIZE, UNANSWERABLE, WANTS_SNAPSHOT
from berth.service.simulation_worker import work
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.insight.whatif.asking import deployment, snapshot

LIVE = b"".join(snapshot(node("n1"), pod("bound", node="n1"), pod("waiting")).encode())
DEEP = b"[" * 20_000 + b"]" * 20_000


def ask(body: bytes) -> str:
    """Return what is wrong with *body*, "" if it is answered."""
    target = BytesIO()
    status = work(BytesIO(SIZE.pack(len(body)) + body + LIVE), target, IN_TREE)
    assert status in (0, UNANSWERABLE)
    return target.getvalue().removeprefix(WANTS_SNAPSHOT).decode() if status else ""


def about(**spec: Any) -> bytes:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    manifest = {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    return json.dumps({"pods": [manifest]}).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(DEEP, id="deep"),
        pytest.param(b'{"x":%s}' % DEEP, id="deep in an unknown field"),
        pytest.param(b'{"pods":[{"metadata":%s}]}' % DEEP, id="deep in a manifest"),
        pytest.param(b'{"snapshot":{"kind":"List","items":[%s]}}' % DEEP, id="deep in a snapshot"),
        pytest.param(b'{"snapshot":{"kind":"\xff"}}', id="a kind that is no text"),
        pytest.param(b'{"\xff":1}', id="a name that is no text"),
        pytest.param(b'{"seed":%s}' % (b"9" * 5_000), id="a number of 5,000 digits"),
        pytest.param(about(priority="high"), id="a priority that is no number"),
        pytest.param(
            about(containers=[{"resources": {"requests": {"cpu": "9" * 5_000}}}]), id="an amount"
        ),
        pytest.param(b'{"templates":[{"manifest":{"kind":[]}}]}', id="a kind that is a list"),
        pytest.param(b'{"templates":[{"manifest":{"kind":{"a":1}}}]}', id="a kind that is a map"),
        pytest.param(b'{"pods":[{"metadata":{"name":{"a":1}}}]}', id="a name that is a map"),
        pytest.param(b'{"config":{"kind":{"a":[]},"apiVersion":7}}', id="a kind of configuration"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(body: bytes) -> None:
    assert 0 < len(ask(body)) < 5_000


FIELDS = st.text(max_size=9) | st.sampled_from(
    ["metadata", "name", "namespace", "labels", "spec", "kind", "template", "replicas", "manifest",
     "containers", "resources", "limits", "requests", "cpu", "affinity", "podAffinity", "volumes",
     "requiredDuringSchedulingIgnoredDuringExecution", "matchLabelKeys", "labelSelector", "key",
     "topologySpreadConstraints", "tolerations", "operator", "values", "ports", "containerPort",
     "parallelism", "completions", "volumeClaimTemplates", "status", "capacity", "items"]
)  # fmt: skip
TEXT = st.text(max_size=9) | st.sampled_from(
    [
        "Pod",
        "Deployment",
        "StatefulSet",
        "Job",
        "Node",
        "DaemonSet",
        "n*",
        "[",
        "500m",
        "1e400",
        "-1",
        "n1",
        "a=b",
        "List",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=15,
)
OBJECT = st.dictionaries(FIELDS, JSON, max_size=4)


KINDS = ["Deployment", "StatefulSet", "Job", "CronJob", "DaemonSet", "Service", "PriorityClass"]


@st.composite
def altered(draw: st.DrawFn) -> Any:
    """A workload of which one part, anywhere, is something else."""
    whole = deployment(kind=draw(st.sampled_from(KINDS)))
    part: Any = whole
    while True:
        key = draw(st.sampled_from(sorted(part)) | FIELDS)
        inner = part.get(key)
        if not isinstance(inner, dict) or draw(st.booleans()):
            part[key] = draw(JSON)
            return whole
        part = inner


TEMPLATES = (
    st.fixed_dictionaries({"manifest": altered() | OBJECT})
    | st.fixed_dictionaries({"text": TEXT | altered().map(json.dumps)})
    | st.fixed_dictionaries({"like": TEXT | st.just("bound")}, optional={"replicas": JSON})
)
PLUGINS = TEXT | st.sampled_from(["NodeResourcesFit", "NodeName"])
WEIGHTS = st.dictionaries(
    TEXT | st.just("default-scheduler"),
    st.dictionaries(PLUGINS, st.integers(-1, 2**31), max_size=2) | JSON,
    max_size=2,
)
QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "pods": st.lists(OBJECT, max_size=2),
        "templates": st.lists(TEMPLATES, max_size=2),
        "addNodes": st.lists(st.fixed_dictionaries({"manifest": OBJECT}), max_size=1),
        "removeNodes": st.fixed_dictionaries({}, optional={"selector": TEXT, "names": JSON}),
        "findNodes": st.fixed_dictionaries({"manifest": OBJECT}),
        "findRemovable": st.fixed_dictionaries({}, optional={"selector": TEXT, "names": JSON}),
        "repack": st.booleans(),
        "config": OBJECT,
        "preset": TEXT | st.sampled_from(["binpack", "spread"]),
        "weights": WEIGHTS,
        "compareWeights": WEIGHTS,
        "profile": TEXT,
        "groupBy": st.lists(TEXT, max_size=2),
        "snapshot": OBJECT | st.fixed_dictionaries({"kind": TEXT, "items": st.lists(JSON)}),
    },
)


@settings(deadline=None)
@given(asked=QUESTIONS | JSON)
def test_whatever_is_asked_has_an_answer(asked: Any) -> None:
    assert len(ask(json.dumps(asked).encode())) < 5_000
