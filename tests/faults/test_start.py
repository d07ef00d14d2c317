"""A scheduler whose first questions are refused waits for better answers."""

import pytest

from tests.faults.proxy import Answer, Fault
from tests.faults.world import world

pytestmark = pytest.mark.wall


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(401, id="its token is not valid yet"),
        pytest.param(403, id="it has no rights yet"),
        pytest.param(429, id="the server has too much to do"),
        pytest.param(503, id="the server is coming up"),
    ],
)
@pytest.mark.parametrize(
    "target",
    [
        pytest.param(r"^/api/v1$", id="asking what is served"),
        pytest.param(r"^/api/v1/nodes\?", id="listing nodes"),
    ],
)
async def test_refused_at_start(target: str, status: int) -> None:
    refusal = Fault("GET", target, times=3, forwarded=False, answer=Answer(status))
    async with world("n1", faults=[refusal]) as cluster:
        await cluster.create_pods("a")
        await cluster.check()
        assert refusal.hits == 3


async def test_kinds_that_are_not_served() -> None:
    """An older API server, or one without these groups, has pods that need none of them."""
    missing = Fault(
        "GET",
        r"^/apis/(resource|storage)\.k8s\.io/",
        times=1_000,
        forwarded=False,
        answer=Answer(404),
    )
    async with world("n1", faults=[missing]) as cluster:
        await cluster.create_pods("a", "b")
        await cluster.check()
        # Asked for once each, and never watched: storage.k8s.io, and resource.k8s.io in the
        # versions of claims and of DeviceTaintRules: v1, v1beta2, v1beta1 and v1alpha3.
        assert missing.hits == 5
