"""The Dockerfile, read and not built: an engine is not everywhere where tests run."""

import fnmatch
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from berth import cli
from berth.runtime.release import version
from tests.packaging.dockerfile import Stage, stages

REPOSITORY = Path(__file__).parents[2]
VERSION = version()
BUILDER, FINAL = stages(REPOSITORY / "Dockerfile")


def ignored(path: str) -> bool:
    """Whether .dockerignore leaves *path*, at the top, out of the build context."""
    verdict = False
    for line in (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#") and fnmatch.fnmatch(path, pattern.lstrip("!")):
            verdict = not pattern.startswith("!")
    return verdict


def test_what_is_copied_is_there_and_not_ignored() -> None:
    sources = BUILDER.copies()
    assert sources
    for source in sources:
        assert (REPOSITORY / source).exists(), source
        assert not ignored(source), source
    assert ignored(".git")
    assert ignored("tests")


def test_the_final_stage_takes_only_what_was_built() -> None:
    assert FINAL.copies() == []
    assert FINAL.all("COPY") == ["--from=builder /opt/berth /opt/berth"]
    assert FINAL.base == BUILDER.base  # else the virtual environment has no Python there
    assert not [line for line in FINAL.all("RUN") if "pip" in line]


@pytest.mark.parametrize("stage", [BUILDER, FINAL], ids=["builder", "final"])
def test_nothing_comes_from_elsewhere(stage: Stage) -> None:
    assert stage.all("ADD") == []
    assert not re.search(r"https?://", " ".join(a for _, a in stage.instructions))
    for line in stage.all("RUN"):
        for step in line.split("&&"):
            if re.search(r"pip .*install .*-r ", step):
                assert "--require-hashes" in step
            elif re.search(r"\bpip\b.* install ", step):
                assert "--no-index" in step, step


def test_dependencies_are_those_of_the_lock() -> None:
    (line,) = [line for line in BUILDER.all("RUN") if "-r requirements.lock" in line]
    assert "--require-hashes" in line
    assert "/opt/berth" in line


def test_what_builds_the_wheel_is_locked() -> None:
    (line,) = [line for line in BUILDER.all("RUN") if "build.lock" in line]
    assert "--require-hashes" in line
    lock = (REPOSITORY / "requirements-build.lock").read_text("utf-8")
    names = {found[1] for row in lock.splitlines() if (found := re.match(r"([\w.-]+)==", row))}
    assert {"hatchling", "editables"} <= names
    assert lock.count("--hash=sha256:") >= len(names)


def test_it_runs_as_nobody_in_particular() -> None:
    assert FINAL.all("USER") == ["65532:65532"]
    keywords = [keyword for keyword, _ in FINAL.instructions]
    assert "RUN" not in keywords[keywords.index("USER") :]


def test_what_it_runs_is_a_command() -> None:
    assert [json.loads(line) for line in FINAL.all("ENTRYPOINT")] == [["berth"]]
    (check,) = FINAL.all("HEALTHCHECK")
    words = json.loads(check.partition("CMD ")[2])
    assert words[0] == "berth"
    assert words[1] in cli.COMMANDS


def test_labels_and_tags_tell_the_version() -> None:
    assert f'org.opencontainers.image.version="{VERSION}"' in FINAL.all("LABEL")[0]
    assert f"image: berth:{VERSION}" in (REPOSITORY / "docker-compose.yml").read_text("utf-8")


@pytest.mark.slow
def test_the_wheel_has_what_berth_reads(tmp_path: Path) -> None:
    """As the builder makes it; also the files that are no Python."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", os.fspath(tmp_path)],
        cwd=REPOSITORY, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = {
        str(path.relative_to(REPOSITORY / top))
        for top in ("app", "plugins")
        for path in (REPOSITORY / top).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert packed == tracked
