"""Which admission plugins run."""

from functools import partial

import pytest

from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.writes.admission.steps import PLUGINS, read_plugins, standard_admission
from tests.cluster.serving import Serving

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(
    ("disabled", "code", "tolerates"),
    [
        ("ServiceAccount", 403, True),
        ("ServiceAccount,ResourceQuota", 201, True),
        ("ServiceAccount, ResourceQuota, DefaultTolerationSeconds", 201, False),
    ],
)
async def test_disabled_plugins(disabled: str, code: int, *, tolerates: bool) -> None:
    admission = partial(standard_admission, disabled=read_plugins(disabled))
    serving = Serving(resources=RESOURCES, admission=admission)
    await serving.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    await serving.post(QUOTAS, quota)
    quota["status"] = {"hard": {"pods": "0"}, "used": {"pods": "0"}}
    await serving.request("PUT", f"{QUOTAS}/q/status", quota)
    got, answer = await serving.request("POST", PODS, POD)
    assert got == code, answer
    if code == 201:
        assert ("tolerations" in answer["spec"]) is tolerates


def test_names_that_nobody_has() -> None:
    assert read_plugins(",".join(PLUGINS)) == set(PLUGINS)
    with pytest.raises(ValueError, match='admission-control plugin "Prority" is unknown'):
        read_plugins("Prority")
