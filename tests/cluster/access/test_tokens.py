"""Whose a token is, and for how long; token files."""

from itertools import count
from pathlib import Path

import pytest

from berth.clock import FakeClock
from berth.cluster.access.tokens import (
    API_AUDIENCE,
    SERVICE_ACCOUNTS_KEY,
    TOKENS_OF_USER,
    Token,
    TokenFileError,
    Tokens,
    draw_token,
    read_token_file,
    service_account_of,
)
from berth.cluster.access.users import AUTHENTICATED, User
from berth.cluster.storage.store import Store

ALICE = User("alice")
CLOCK_START = 1000.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(CLOCK_START)


@pytest.fixture
def tokens(clock: FakeClock) -> Tokens:
    numbers = count(1)
    return Tokens(clock=clock, draw=lambda: f"token-{next(numbers)}")


def test_tokens_that_are_given_and_drawn(tokens: Tokens) -> None:
    tokens.add("secret", ALICE)
    assert tokens.issue(User("bob")) == "token-1"
    found = [tokens.find(each, Store()) for each in ("secret", "token-1", "token-2", "")]
    assert found == [Token(ALICE), Token(User("bob")), None, None]


def test_a_token_expires(tokens: Tokens, clock: FakeClock) -> None:
    issued = tokens.issue(ALICE, seconds=60, audiences=["vault"])
    clock.advance(59)
    assert tokens.find(issued, Store()) == Token(ALICE, ("vault",), CLOCK_START + 60)
    clock.advance(1)
    assert tokens.find(issued, Store()) is None


def test_the_token_of_a_service_account_dies_with_it(tokens: Tokens) -> None:
    store = Store()
    account = {"metadata": {"name": "robot", "namespace": "web", "uid": "u-1"}}
    store.create(SERVICE_ACCOUNTS_KEY, account)
    user = service_account_of("web", "robot", store)
    token = tokens.issue(user, seconds=60)
    assert tokens.find(token, store) == Token(user, (API_AUDIENCE,), CLOCK_START + 60)
    store.delete(SERVICE_ACCOUNTS_KEY, "web", "robot")
    assert tokens.find(token, store) is None
    another = {"metadata": {"name": "robot", "namespace": "web", "uid": "u-2"}}
    store.create(SERVICE_ACCOUNTS_KEY, another)
    assert tokens.find(token, store) is None


def test_drawn_tokens_are_long_and_new() -> None:
    assert len({draw_token() for _ in range(100)}) == 100
    assert len(draw_token()) >= 43


def test_a_token_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('t1,alice,1,"devs, ops"\n\nt2,bob,2\n', encoding="utf-8")
    assert read_token_file(path) == {
        "t1": User("alice", ("devs", "ops", AUTHENTICATED), "1"),
        "t2": User("bob", (AUTHENTICATED,), "2"),
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("t1,alice\n", "1: expected at least 3 columns", id="no uid"),
        pytest.param("t1,,1\n", "1: token and user must not be empty", id="no user"),
        pytest.param(
            "t1,a,1\nt1,b,2\n", "2: the token is that of 'a' already", id="the same token twice"
        ),
    ],
)
def test_token_files_that_cannot_be_used(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TokenFileError, match=f"tokens.csv:{why}"):
        read_token_file(path)


def test_a_user_has_so_many_tokens(tokens: Tokens, clock: FakeClock) -> None:
    forever = tokens.issue(ALICE)
    robot = User("robot")
    other = tokens.issue(User("other"), seconds=3600)
    issued = [tokens.issue(robot, seconds=3600) for _ in range(3 * TOKENS_OF_USER)]
    known = [tokens.find(each, Store()) is not None for each in issued]
    assert known == [False] * (2 * TOKENS_OF_USER) + [True] * TOKENS_OF_USER
    assert len(tokens._ends) <= 3 * TOKENS_OF_USER
    assert tokens.find(other, Store()) is not None
    clock.advance(3600)
    tokens.issue(robot, seconds=1)
    assert tokens.find(forever, Store()) is not None
    assert (len(tokens._tokens), len(tokens._ends), len(tokens._issued)) == (2, 1, 1)
