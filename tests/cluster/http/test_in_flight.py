"""Requests in progress: how many there may be, whose do not count, and what the others are told."""

import pytest

from berth.cluster.access.users import (
    ADMIN,
    ANONYMOUS,
    CONTROLLER_MANAGER,
    KUBELETS,
    SCHEDULER,
    User,
    service_account,
)
from berth.cluster.http.in_flight import MUTATING, READ_ONLY, InFlight, InFlightLimits
from berth.cluster.resources import Object
from tests.cluster.access.secured import Secured

EVE, BOB, ALICE = User("eve"), User("bob"), User("alice")


def test_each_kind_has_a_limit_of_its_own() -> None:
    in_flight = InFlight(InFlightLimits(read_only=2, mutating=1))
    asked = (("GET", EVE), ("POST", EVE), ("HEAD", BOB), ("GET", ALICE), ("DELETE", ALICE))
    kinds = [in_flight.enter(method, user) for method, user in asked]
    assert kinds == [READ_ONLY, MUTATING, READ_ONLY, "", ""]
    in_flight.leave(MUTATING, EVE)
    assert in_flight.enter("PUT", BOB) == MUTATING


def test_a_flow_has_half_of_them() -> None:
    in_flight = InFlight(InFlightLimits(read_only=4, mutating=4))
    accounts = [service_account("n", f"a{number}") for number in range(4)]
    assert [in_flight.enter("POST", user) for user in accounts] == [MUTATING, MUTATING, "", ""]
    assert [in_flight.enter("POST", user) for user in (EVE, BOB)] == [MUTATING, MUTATING]
    in_flight.leave(MUTATING, accounts[1])
    assert in_flight.enter("POST", accounts[2]) == MUTATING
    for user in (EVE, BOB, accounts[0], accounts[2]):
        in_flight.leave(MUTATING, user)
    assert in_flight._flows == {}


@pytest.mark.parametrize(
    ("user", "is_exempt"),
    [
        (ADMIN, True),
        (KUBELETS, True),
        (CONTROLLER_MANAGER, True),
        (SCHEDULER, True),
        (EVE, False),
        (ANONYMOUS, False),
        (service_account("default", "default"), False),
    ],
    ids=lambda value: value.name if isinstance(value, User) else "",
)
def test_who_is_served_all_the_same(user: User, is_exempt: bool) -> None:
    in_flight = InFlight(InFlightLimits(read_only=0, mutating=0))
    assert bool(in_flight.enter("PATCH", user)) is is_exempt


def test_the_peak_is_of_the_last_second() -> None:
    in_flight = InFlight(InFlightLimits())
    for _ in range(3):
        in_flight.enter("GET", EVE)
    for _ in range(2):
        in_flight.leave(READ_ONLY, EVE)
    assert in_flight.peaks() == {READ_ONLY: 3, MUTATING: 0}
    in_flight.tick()
    assert in_flight.peaks()[READ_ONLY] == 3
    in_flight.tick()
    assert in_flight.peaks()[READ_ONLY] == 1


async def test_who_comes_when_it_is_full_is_told_to_come_again() -> None:
    secured = Secured(limits=InFlightLimits(read_only=1, mutating=0))
    everything: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    metrics: Object = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/readyz"]}
    await secured.grant(EVE.name, everything, metrics)
    headers = {
        "authorization": f"Bearer {secured.tokens.issue(EVE)}",
        "content-type": "application/json",
    }
    http, path = secured.http, "/api/v1/nodes"
    answer = await http.post(path, content=b"{}", headers=headers)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert answer.text == "Too many requests, please try again later.\n"
    assert (await http.get(path, headers=headers)).status_code == 200
    assert (await http.get("/readyz", headers=headers)).text == "ok"
    assert (await secured.ask("POST", path, {"metadata": {"name": "masters"}}))[0] == 201

    text = (await http.get("/metrics", headers=headers)).text
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 1.0' in text
    refused = next(line for line in text.splitlines() if 'code="429"' in line)
    assert refused.startswith("apiserver_request_total{")
    assert 'resource="nodes"' in refused
    assert 'verb="POST"' in refused
    assert refused.endswith(" 1.0")
