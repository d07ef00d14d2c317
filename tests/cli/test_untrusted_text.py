"""What a stranger wrote into objects reaches the terminal of whoever looks at them as text."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_cli import scenario
from tests.hostile_text import FORGES, HOSTILE, LONE, MARKUP, misread

from berth import cli
from berth.cli import version
from berth.kube.client.errors import ApiError


def naming(text: str) -> str:
    """Return a scenario whose id, and whose pod's claim, are called *text*."""
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": text}}]},
    }
    return json.dumps(scenario(text, pod=pod)) + "\n"


@pytest.mark.parametrize("text", [each for each in HOSTILE if each is not LONE])
def test_an_explanation(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(naming(text), encoding="utf-8")

    assert cli.main(["explain", "-f", str(source)]) == 0
    table = capsys.readouterr().out
    assert not misread(table)
    assert not any(line.startswith("14:03") for line in table.splitlines())
    if text is MARKUP:
        assert table.count(text) > 1
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert cli.main(["explain", "-f", str(source), "--output", output]) == 0
        told = capsys.readouterr().out
        assert not misread(told)
        assert read(told)["id"] == text
        assert text in read(told)["evaluation"]["message"]


def test_half_a_character_is_told_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(scenario(LONE)) + "\n", encoding="utf-8")

    assert cli.main(["explain", "-f", str(source)]) == 0
    assert capsys.readouterr().out.startswith("scenario  a\\ud800b\\udfff\n")
    assert cli.main(["explain", "-f", str(source), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == LONE
    assert cli.main(["explain", "-f", str(source), "-o", str(target)]) == 0
    assert json.loads(target.read_text(encoding="utf-8"))["id"] == LONE


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_server_says(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_given: object) -> int:
        raise ApiError(500, "InternalError", f"the server says {text}")

    monkeypatch.setattr(version, "run", refuse)
    assert cli.main(["version"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert not misread(line)


def test_a_file_is_refused_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "\x1b[2J.jsonl"
    assert cli.main(["explain", "-f", str(source), "--id", FORGES]) == 2
    assert "\\x1b[2J.jsonl: No such file" in capsys.readouterr().err
