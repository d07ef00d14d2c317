"""Which pod and port a Service means."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from berth.kube.client.errors import ForbiddenError, NotFoundError
from berth.kube.client.service_pods import PodPort, ServiceError, ServicePort, pod_of
from tests.kube.client.fake_api import FakeApi, Request

HTTPS = {"name": "https", "port": 10259, "targetPort": "serving"}


def answers_of(by_path: Mapping[str, Any]) -> FakeApi:
    """Return an API server that has these answers by path."""

    def answer(request: Request) -> bytes | Exception:
        missing = NotFoundError(404, "NotFound", f"{request.path} not found")
        found = by_path.get(request.path, missing)
        return found if isinstance(found, Exception) else json.dumps(found).encode()

    return FakeApi(answer)


def pod(name: str, *, ready: str = "True", deleted: bool = False) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **({"deletionTimestamp": "2026-11-23"} if deleted else {})},
        "spec": {
            "containers": [{"name": "c", "ports": [{"name": "serving", "containerPort": 10259}]}]
        },
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def lease(holder: str | None) -> dict[str, Any]:
    return {"items": [{"spec": {"holderIdentity": holder}}]}


def cluster(*pods: dict[str, Any], ports: Any = (HTTPS,), **more: Any) -> FakeApi:
    leases = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
    none: dict[str, Any] = {"items": []}
    return answers_of(
        {
            "/api/v1/namespaces/b/services/s": {
                "spec": {"ports": list(ports), "selector": more.get("selector", {"a": "b"})}
            },
            "/api/v1/namespaces/b/pods": {"items": pods},
            leases.format("b"): more.get("leases", none),
            leases.format("kube-system"): more.get("control_plane", none),
        }
    )


FORBIDDEN = ForbiddenError(403, "Forbidden", "no")


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param(cluster(pod("p")), "p", id="the only pod"),
        pytest.param(cluster(pod("p", ready="False"), pod("q")), "q", id="the one that is ready"),
        pytest.param(cluster(pod("p", deleted=True), pod("q")), "q", id="none that is going"),
        pytest.param(
            cluster(pod("p"), pod("q"), leases=lease("q_7f")), "q", id="the one that leads"
        ),
        pytest.param(
            cluster(pod("p"), pod("p-2"), leases=lease("p-2_7f")), "p-2",
            id="not one whose name begins alike",
        ),
        pytest.param(
            cluster(pod("p"), pod("q"), control_plane=lease("q_7f")), "q",
            id="the one that leads the cluster",
        ),
        pytest.param(cluster(pod("p"), pod("q"), leases=lease(None)), "p", id="nobody leads"),
        pytest.param(
            cluster(pod("p"), pod("q"), leases=FORBIDDEN, control_plane=FORBIDDEN), "p",
            id="who leads is a secret",
        ),
    ],
)  # fmt: skip
async def test_which_pod(answers: FakeApi, want: str) -> None:
    assert await pod_of(answers, ServicePort("b", "s")) == PodPort("b", want, 10259)
    assert answers.requests[1].params == {"labelSelector": "a=b"}


@pytest.mark.parametrize(
    ("ports", "asked", "want"),
    [
        pytest.param([HTTPS], "", 10259, id="the only one"),
        pytest.param([{"port": 80}, HTTPS], "https", 10259, id="by name"),
        pytest.param([{"port": 80}, HTTPS], "10259", 10259, id="by number"),
        pytest.param([{"port": 443, "targetPort": 8443}], "", 8443, id="another on the pod"),
        pytest.param([{"port": 443}], "", 443, id="the same on the pod"),
    ],
)
async def test_which_port(ports: Any, asked: str, want: int) -> None:
    found = await pod_of(cluster(pod("p"), ports=ports), ServicePort("b", "s", asked))
    assert found.port == want


@pytest.mark.parametrize(
    ("answers", "asked", "why"),
    [
        pytest.param(cluster(), "", "b/s: none of its pods is ready", id="no pods"),
        pytest.param(
            cluster(pod("p"), selector={}), "", "b/s: it has no selector", id="no selector"
        ),
        pytest.param(
            cluster(pod("p")), "http", "b/s:http: no such port; it has 10259 https", id="no port"
        ),
        pytest.param(
            cluster(pod("p"), ports=[{"port": 80}, HTTPS]), "",
            "b/s: name one of its ports; it has 80, 10259 https", id="several ports",
        ),
        pytest.param(
            cluster(pod("p"), ports=[{"port": 80, "targetPort": "web"}]), "",
            "b/s: pod p has no port 'web'", id="a port that the pod has not",
        ),
        pytest.param(
            answers_of({"/api/v1/namespaces/b/services/s": {"spec": 7}}), "",
            "b/s: the answer cannot be read", id="no Service",
        ),
    ],
)  # fmt: skip
async def test_what_leads_nowhere(answers: FakeApi, asked: str, why: str) -> None:
    with pytest.raises(ServiceError) as told:
        await pod_of(answers, ServicePort("b", "s", asked))
    assert str(told.value).startswith(f"service {why}")
