"""What a watch sends comes to the same, decoded to an outline first or not."""

import random
from typing import Any

import msgspec
import pytest

from berth.kube.informer.reflector import Reflector
from berth.kube.objects.shared_parts import PodDecoder, PodOutline
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.kind import PODS
from tests.kube.informer.scripted import Recorder, ScriptedApi

META: Any = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
CPU = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def line(obj: Any, kind: str = "ADDED") -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj})


def nested(levels: int) -> bytes:
    return b'{"x":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    ("event", "counts"),
    [
        pytest.param(line({"metadata": META, "spec": CPU}), True, id="a pod"),
        pytest.param(line({"metadata": META}), True, id="metadata alone"),
        pytest.param(
            line({"metadata": META, "spec": {**CPU, "nodeName": "n"}, "status": {"phase": "X"}}),
            True,
            id="a bound pod",
        ),
        pytest.param(
            line({"metadata": META, "spec": {**CPU, "nodeName": "n", "overhead": {"cpu": "x"}}}),
            True,
            id="a quantity that is none",
        ),
        pytest.param(
            line({"metadata": META, "spec": {**CPU, "nodeName": "n"}, "status": {"phase": 1}}),
            True,
            id="a status that is none",
        ),
        pytest.param(
            line({"metadata": {**META, "labels": {"a": 1}}, "spec": {"nodeName": "n"}}),
            True,
            id="labels that are none",
        ),
        pytest.param(
            line({"metadata": {**META, "generation": "x"}, "spec": {"nodeName": "n"}}),
            True,
            id="a number in metadata that is none",
        ),
        pytest.param(line({"metadata": META, "spec": "x"}), False, id="a spec that is none"),
        pytest.param(line({"metadata": {**META, "name": 1}}), False, id="no name"),
        pytest.param(line({"metadata": None}), False, id="no metadata"),
        pytest.param(line(1), False, id="no object"),
        pytest.param(
            line({"metadata": META, "spec": msgspec.Raw(nested(2000))}), False, id="nested deeply"
        ),
    ],
)
def test_an_outline_makes_no_difference(event: bytes, *, counts: bool) -> None:
    def told(outline: type[object] | None) -> tuple[object, ...]:
        malformed: list[str] = []
        handler = Recorder()
        reflector: Reflector[Any] = Reflector(
            ScriptedApi(watches=[]),
            "/api/v1/pods",
            decode=PodDecoder(),
            outline=outline,
            decode_partly=PODS.decode_partly,
            handler=handler,
            clock=FakeClock(),
            rng=random.Random(1),
            on_malformed=lambda key, _raw, exc: malformed.append(f"{key}: {exc}"),
        )
        reflector._apply(reflector._decode_event(event))
        return reflector.store, reflector.unreadable, malformed, handler.calls

    assert told(PodOutline) == told(None)
    assert bool(told(PodOutline)[0]) is counts
