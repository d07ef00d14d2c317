"""Who may use which path."""

import json

import pytest

from berth.kube.client.errors import UnavailableError
from berth.kube.client.reviews import User
from berth.runtime.clock import FakeClock
from berth.service.server.access.authentication import ANONYMOUS
from berth.service.server.access.authorization import Authorizer, PublicPathError, PublicPaths
from tests.kube.client.fake_api import FakeApi, Request

JANE = User(username="jane", groups=("dev",))
ADMIN = User(username="root", groups=("system:masters",))


def reviewer(request: Request) -> bytes:
    """Let jane get /metrics."""
    spec = request.body["spec"]
    wanted = spec["nonResourceAttributes"]
    allowed = spec["user"] == "jane" and wanted == {"path": "/metrics", "verb": "get"}
    return json.dumps({"status": {"allowed": allowed}}).encode()


def authorizer(api: FakeApi, clock: FakeClock | None = None) -> Authorizer:
    return Authorizer(
        api,
        public=PublicPaths(("/healthz", "/open/*")),
        allowed_ttl=10.0,
        denied_ttl=5.0,
        clock=clock or FakeClock(),
    )


@pytest.mark.parametrize(
    ("user", "path", "verb", "want", "asked"),
    [
        pytest.param(JANE, "/metrics", "get", True, 1, id="allowed by the API server"),
        pytest.param(JANE, "/metrics", "delete", False, 1, id="another verb"),
        pytest.param(JANE, "/configz", "get", False, 1, id="another path"),
        pytest.param(ANONYMOUS, "/metrics", "get", False, 1, id="anonymous"),
        pytest.param(ANONYMOUS, "/healthz", "get", True, 0, id="public"),
        pytest.param(ADMIN, "/metrics", "delete", True, 0, id="a master asks nobody"),
    ],
)
async def test_who_may(user: User, path: str, verb: str, want: bool, asked: int) -> None:
    api = FakeApi(reviewer)
    assert await authorizer(api).allows(user, path=path, verb=verb) == want
    assert len(api.requests) == asked


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/healthz", True, id="the path itself"),
        pytest.param("/healthz/ping", False, id="one below it"),
        pytest.param("/healthzz", False, id="one that begins so"),
        pytest.param("/open/", True, id="the star stands for nothing"),
        pytest.param("/open/a/b", True, id="the star stands for more"),
        pytest.param("/open", False, id="before the star"),
        pytest.param("/", False, id="the root"),
        pytest.param("//healthz", False, id="another spelling, which is routed elsewhere"),
    ],
)
def test_public_paths(path: str, want: bool) -> None:
    assert (path in PublicPaths(("/healthz", "open/*"))) == want


def test_everything_may_be_public() -> None:
    assert "/metrics" in PublicPaths(("/*",))


@pytest.mark.parametrize("path", ["/a*b", "*/a", "/a**"])
def test_a_star_elsewhere(path: str) -> None:
    with pytest.raises(PublicPathError, match="only trailing"):
        PublicPaths(("/healthz", path))


@pytest.mark.parametrize(
    ("path", "seconds"),
    [pytest.param("/metrics", 10.0, id="a yes"), pytest.param("/configz", 5.0, id="a no")],
)
async def test_answers_are_remembered_for_a_while(path: str, seconds: float) -> None:
    api, clock = FakeApi(reviewer), FakeClock()
    tested = authorizer(api, clock)
    for advance, asked in ((0.0, 1), (seconds - 0.1, 1), (0.1, 2)):
        clock.advance(advance)
        assert await tested.allows(JANE, path=path, verb="get") == (path == "/metrics")
        assert len(api.requests) == asked


async def test_users_of_one_name_are_told_apart() -> None:
    asked = authorizer(FakeApi(reviewer))
    assert await asked.allows(JANE, path="/metrics", verb="get")
    for other in (User(username="jane", uid="2"), User(username="joe", groups=("dev",))):
        assert await asked.allows(other, path="/metrics", verb="get") == (other.username == "jane")


async def test_very_long_questions_are_not_kept() -> None:
    api = FakeApi(reviewer)
    asked = authorizer(api)
    for _ in range(2):
        assert not await asked.allows(JANE, path="/" + "a" * 10_000, verb="get")
    assert len(api.requests) == 2


async def test_no_answer_is_none() -> None:
    gone = UnavailableError("nobody there", sent=False)
    with pytest.raises(UnavailableError):
        await authorizer(FakeApi(lambda _: gone)).allows(JANE, path="/metrics", verb="get")
