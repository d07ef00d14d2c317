"""What files say of a release agrees. ``make release-check`` is not run: it takes minutes."""

import re
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.runtime.release import RELEASES
from docs.generate import man
from release import artifacts, check, readme
from release.commands import ReleaseError

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
CHART = yaml.safe_load((REPOSITORY / "helm/berth/Chart.yaml").read_text("utf-8"))
VERSION = PROJECT["version"]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))


def text_files() -> list[Path]:
    """Return the files of the repository that may name its address."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("this is no checkout of git")
    suffixes = {"", ".md", ".toml", ".yaml", ".yml", ".py"}
    files = (REPOSITORY / name for name in listed.stdout.split("\0") if name)
    return [path for path in files if path.suffix in suffixes and path.is_file()]


def test_the_address_of_the_project_is_the_same_everywhere() -> None:
    address = PROJECT["urls"]["Source"].removeprefix("https://")
    other = {
        f"{path.relative_to(REPOSITORY)}: {named}"
        for path in text_files()
        for named in re.findall(r"\bgithub\.com/[\w-]+/berth\b", path.read_text("utf-8"))
        if named not in (address, "github.com/ACME/berth")  # an example in docs/releasing.md
    }
    assert not other


@pytest.mark.parametrize(
    "named",
    [
        pytest.param(CHART["version"], id="the chart"),
        pytest.param(CHART["appVersion"], id="what the chart installs"),
        *[
            pytest.param(found, id=f"{name}: {found}")
            for name in ("Dockerfile", "docker-compose.yml", "README.md", "docs/modes.md")
            for found in re.findall(
                r"berth:([\d.]+)|image\.version=\"([\d.]+)|IMAGE:([\d.]+)",
                (REPOSITORY / name).read_text("utf-8"),
            )
        ],
    ],
)
def test_the_version_is_the_same_everywhere(named: str | tuple[str, ...]) -> None:
    assert VERSION in named


def test_classifiers_are_the_versions_that_are_checked() -> None:
    checks = yaml.safe_load((REPOSITORY / ".github/workflows/checks.yml").read_text("utf-8"))
    classifiers = " ".join(PROJECT["classifiers"])
    told = re.findall(r"Python :: (3\.\d+)", classifiers)
    assert checks["jobs"]["tests"]["strategy"]["matrix"]["python"] == told
    assert PROJECT["requires-python"] == f">={told[0]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_more_rights_than_it_needs(path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 120, name
        uploads = {"packages", "id-token"} & job.get("permissions", {}).keys()
        assert not uploads or path.name == "release.yml", name
        for step in job["steps"]:
            assert "secrets." not in step.get("run", ""), name
            # What others write reaches a shell by the environment, not as its text.
            assert "${{ github." not in step.get("run", ""), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_targets_of_make_in_workflows_exist(path: Path) -> None:
    targets = re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"\bmake ([\w-]+)", path.read_text("utf-8"))) <= set(targets)


CHANGES = """# Changelog

## [Unreleased]

### Added

- Later.

## [1.2.3] - 2026-12-01

### Added

- [Now](docs/now.md).

[Unreleased]: https://example.com/main
[1.2.3]: https://example.com/1.2.3
"""


@pytest.mark.parametrize(
    ("version", "notes"),
    [
        pytest.param(
            "1.2.3",
            "### Added\n\n- [Now](https://example.com/berth/blob/v1.2.3/docs/now.md).\n",
            id="the section of the version",
        ),
        pytest.param("9.9.9", "### Added\n\n- Later.\n", id="Unreleased before there is one"),
    ],
)
def test_notes(version: str, notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(CHANGES, encoding="utf-8")
    monkeypatch.setattr(artifacts, "CHANGELOG", changelog)
    monkeypatch.setattr(artifacts, "DIST", tmp_path)

    artifacts.make_notes(version, "https://example.com/berth")

    assert (tmp_path / "NOTES.md").read_text("utf-8") == notes


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        pytest.param("[a](docs/a.md#b)", "[a](HOME/blob/v1.2.3/docs/a.md#b)", id="a page"),
        pytest.param("![a](docs/a.svg)", "![a](HOME/raw/v1.2.3/docs/a.svg)", id="a picture"),
        pytest.param(
            "[![a](docs/a.png)](docs/a.md)",
            "[![a](HOME/raw/v1.2.3/docs/a.png)](HOME/blob/v1.2.3/docs/a.md)",
            id="a picture that leads to a page",
        ),
        pytest.param("[a](https://example.org/)", "[a](https://example.org/)", id="elsewhere"),
        pytest.param("[a](#b)", "[a](#b)", id="on the same page"),
    ],
)
def test_the_readme_of_packages_links_to_the_repository(text: str, absolute: str) -> None:
    home = "https://example.com/berth"
    assert readme.absolute(text, home, "1.2.3") == absolute.replace("HOME", home)


@pytest.mark.parametrize(
    ("tag", "source", "version", "says"),
    [
        pytest.param("v1.2.3", "https://github.com/ACME/berth", "1.2.3", "", id="ready"),
        pytest.param(
            "v1.2.4",
            "https://github.com/ACME/berth",
            "1.2.3",
            "is not of version",
            id="another tag",
        ),
        pytest.param(
            "v1.2.3", "https://github.com/OWNER/berth", "1.2.3", "placeholder", id="no address"
        ),
        pytest.param(
            "v9.9.9", "https://github.com/ACME/berth", "9.9.9", "no section", id="no changes"
        ),
    ],
)
def test_a_tag_is_released_only_if_nothing_is_left(
    tag: str, source: str, version: str, says: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "CHANGELOG.md").write_text(CHANGES, encoding="utf-8")
    chart = f"version: {version}\nappVersion: {version}\n"
    (tmp_path / "Chart.yaml").write_text(chart, encoding="utf-8")
    monkeypatch.setattr(artifacts, "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(artifacts, "CHART", tmp_path)
    project = {"version": version, "urls": {"Source": source}}

    if says:
        with pytest.raises(ReleaseError, match=says):
            check.left_to_do(project, tag)
    else:
        assert check.left_to_do(project, tag) == []


def test_an_archive_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    (tmp_path / "second").touch()
    one, other = tmp_path / "one.tar.gz", tmp_path / "other.tar.gz"

    artifacts._pack(one, {"file": tmp_path / "first"})
    artifacts._pack(other, {"file": tmp_path / "second"})

    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as tar:
        assert tar.getnames() == ["file"]


def test_every_command_has_a_man_page_with_its_flags() -> None:
    pages = man.pages()
    assert {"berth.1", "berth-run.1", "berth-explain.1"} <= pages.keys()
    assert "\\-\\-leader\\-elect\\-lease\\-duration" in pages["berth-run.1"]
    for name, page in pages.items():
        assert page.startswith(".TH "), name
        requests = {line.split()[0] for line in page.splitlines() if line.startswith(".")}
        assert requests <= {".TH", ".SH", ".SS", ".TP", ".B", ".I", ".BR"}, name


def test_text_begins_no_request_of_roff() -> None:
    assert man.text(".5 of a \\ and --flag") == "\\&.5 of a \\e and \\-\\-flag"


def test_the_plugin_for_krew_is_described_as_krew_asks() -> None:
    plugin = yaml.safe_load((artifacts.FILES / "krew.yaml").read_text("utf-8"))
    assert plugin["metadata"]["name"] == "berth"
    assert len(plugin["spec"]["shortDescription"]) <= 50
    (platform,) = plugin["spec"]["platforms"]
    assert platform["bin"] == (artifacts.FILES / "kubectl-berth").name
    assert platform["uri"].startswith(PROJECT["urls"]["Source"])
    subprocess.run(["sh", "-n", artifacts.FILES / "kubectl-berth"], check=True)


def test_releases_of_kubernetes_are_told_as_they_are() -> None:
    text = (REPOSITORY / "docs/versions.md").read_text("utf-8")
    oldest = re.fullmatch(r">=(1\.\d+)\.0-0", CHART["kubeVersion"])
    assert oldest
    assert f"| API servers | {oldest[1]} to {RELEASES[-1]}." in text
    assert f"| emulated decisions | {' and '.join(RELEASES)}," in text
