"""Tokens that are somebody's for ever; token files."""

from itertools import count
from pathlib import Path

import pytest

from berth.cluster.access.tokens import TokenFileError, Tokens, draw_token, read_token_file
from berth.cluster.access.users import AUTHENTICATED, User

ALICE = User("alice")


def test_tokens_that_are_given_and_drawn() -> None:
    numbers = count(1)
    tokens = Tokens(draw=lambda: f"token-{next(numbers)}")
    tokens.add("secret", ALICE)
    assert tokens.issue(User("bob")) == "token-1"
    found = [tokens.find(each) for each in ("secret", "token-1", "token-2", "")]
    assert found == [ALICE, User("bob"), None, None]


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
