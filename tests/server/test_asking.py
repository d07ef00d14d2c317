"""What becomes of answers that are none."""

import httpx
import pytest

from app.explain.explanation import Explanation
from app.server.asking import AskError, ask_about_pod

URL = "http://127.0.0.1:1"


def test_the_pod_and_the_number_of_nodes_are_asked_for() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        told = Explanation(pod="ns/p", uid="u", profile="default-scheduler")
        return httpx.Response(200, content=told.model_dump_json(by_alias=True))

    told = ask_about_pod(URL, "ns/p", nodes="7", transport=httpx.MockTransport(answer))
    assert (told.pod, seen) == ("ns/p", [f"{URL}/explain/pods/ns/p?nodes=7"])


@pytest.mark.parametrize(
    ("response", "why"),
    [
        pytest.param(
            httpx.Response(404, json={"detail": "no such pod"}), "^no such pod$", id="404"
        ),
        pytest.param(
            httpx.Response(404, text="nothing here"), "not as berth does", id="a stranger"
        ),
        pytest.param(httpx.Response(200, json={"pod": 1}), "not as berth does", id="another 200"),
    ],
)
def test_refusals(response: httpx.Response, why: str) -> None:
    with pytest.raises(AskError, match=why):
        ask_about_pod(URL, "a/b", nodes="1", transport=httpx.MockTransport(lambda _: response))


def test_an_address_that_is_none() -> None:
    with pytest.raises(AskError, match="no scheduler answers at nonsense"):
        ask_about_pod("nonsense", "a/b", nodes="1")
