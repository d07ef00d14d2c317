"""Files of scenarios that cannot be read."""

import gzip
from pathlib import Path

import pytest

from berth.insight.offline import files
from berth.insight.offline.files import FileError, opened, scenarios


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(gzip.compress(b"{}\n" + b" " * 2000), "line 2: longer than 1000", id="a line"),
        pytest.param(gzip.compress(b"{}\n")[:-5], "line 2: cannot be read", id="cut off"),
        pytest.param(b"no gzip", "line 1: cannot be read", id="no gzip"),
        pytest.param(gzip.compress(b"\xff\n"), "line 1: cannot be read", id="no text"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(
    tmp_path: Path, content: bytes, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    path = tmp_path / "scenarios.jsonl.gz"
    path.write_bytes(content)
    with opened(path, "rt") as file, pytest.raises(FileError, match=f"{path}, {says}"):
        list(scenarios(path, file))
