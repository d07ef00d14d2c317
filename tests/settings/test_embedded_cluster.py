"""The flags that say who may use an embedded cluster."""

import argparse
from pathlib import Path

import pytest

from berth.cluster.access.tokens import TokenFileError
from berth.flags.embedded_cluster import add_cluster_flags
from berth.settings.embedded_cluster import embedded_cluster


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_cluster_flags(parser)
    return parser.parse_args(argv)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("t,alice\n", "tokens.csv:1: expected at least 3 columns", id="malformed"),
        pytest.param(None, "tokens.csv: No such file or directory", id="absent"),
    ],
)
def test_token_files_that_cannot_be_used_are_named(
    tmp_path: Path, text: str | None, why: str
) -> None:
    path = tmp_path / "tokens.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(TokenFileError, match=why):
        embedded_cluster(parsed(f"--token-auth-file={path}"))


@pytest.mark.wall
@pytest.mark.parametrize(
    ("argv", "scheme"),
    [
        pytest.param([], "https://", id="secure unless told otherwise"),
        pytest.param(["--insecure"], "http://", id="insecure"),
    ],
)
async def test_tls(argv: list[str], scheme: str) -> None:
    cluster = embedded_cluster(parsed(*argv))
    await cluster.start(0)
    assert cluster.url.startswith(scheme)
    await cluster.stop()


@pytest.mark.wall
async def test_tokens_of_the_file_are_good(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("secret,alice,1,system:masters\n", encoding="utf-8")
    cluster = embedded_cluster(parsed(f"--token-auth-file={path}"))
    await cluster.start(0)
    client = await cluster.connect("alice", token="secret")
    assert b"NodeList" in await client.request("GET", "/api/v1/nodes")
    await client.close()
    await cluster.stop()
