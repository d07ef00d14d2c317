"""``make release-check``: all that a release does, but the upload.

It makes the artifacts in ``dist/``, and installs and tries each in a place where there is nothing
else.
"""

import argparse
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from release import artifacts
from release.commands import DIST, ROOT, ReleaseError

PLACEHOLDER: Final = "github.com/OWNER/"
"""In the project's address, until somebody fills it in: see docs/releasing.md."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make release-check", allow_abbrev=False)
    parser.add_argument("--tag", default="", help="the tag that is released, as v1.2.3")
    tag: str = parser.parse_args(argv).tag
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    try:
        left = left_to_do(project, tag)
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        with tempfile.TemporaryDirectory(prefix="berth-release-") as scratch:
            left += make_all(project["version"], project["urls"]["Source"], Path(scratch))
    except ReleaseError as exc:
        sys.stderr.write(f"release-check: {exc}\n")
        return 1
    for path in sorted(DIST.iterdir()):
        sys.stdout.write(f"{path.stat().st_size / 1024:10.0f} KiB  dist/{path.name}\n")
    for point in left:
        sys.stderr.write(f"NOT DONE: {point}\n")
    return 0


def left_to_do(project: Mapping[str, Any], tag: str) -> list[str]:
    """Return what is missing in the repository; nothing may be for a release with *tag*.

    Raises ReleaseError.
    """
    version = project["version"]
    chart = yaml.safe_load((artifacts.CHART / "Chart.yaml").read_text("utf-8"))
    if {chart["version"], chart["appVersion"]} != {version}:
        raise ReleaseError(f"helm/berth/Chart.yaml is not of version {version}")
    left = []
    if PLACEHOLDER in project["urls"]["Source"]:
        left.append(f"the project's address is the placeholder {project['urls']['Source']}")
    if f"\n## [{version}]" not in artifacts.CHANGELOG.read_text("utf-8"):
        left.append(f"CHANGELOG.md has no section [{version}], [Unreleased] stands in for it")
    if tag and tag != f"v{version}":
        left.append(f"tag {tag} is not of version {version}")
    if tag and left:
        raise ReleaseError("; ".join(left))
    return left


def make_all(version: str, address: str, scratch: Path) -> list[str]:
    """Make and try every artifact; return what could not be done here. Raises ReleaseError."""
    with step("release notes"):
        artifacts.make_notes(version, address)
    with step("wheel and source distribution"):
        wheel, sdist = artifacts.make_distributions()
    with step("the readme that the package index shows"):
        artifacts.try_readme(wheel, version, address)
    with step("the wheel, installed in an empty environment"):
        installed = artifacts.try_wheel(wheel, version, scratch / "wheel")
    with step("the source distribution, built and installed in an empty environment"):
        artifacts.try_source(sdist, wheel, version, scratch / "source")
    with step("bill of materials"):
        artifacts.make_bill_of_materials(installed)
    with step("plugin of kubectl, unpacked and called"):
        artifacts.make_krew_plugin(wheel, version, scratch / "krew")
    with step("chart, unpacked and rendered"):
        artifacts.make_chart(version, scratch / "chart")
    with step("man pages, formatted"):
        artifacts.make_man_pages(installed, version, scratch / "man")
    with step("documentation, built with the wheel"):
        artifacts.make_site(wheel, version, scratch / "site")
    left = []
    engine = artifacts.container_engine()
    if engine is None:
        left.append("no image archive: neither docker nor podman answers here")
    else:
        with step(f"image, by {engine}, loaded and run"):
            artifacts.make_image(engine, version, scratch / "image")
    with step("checksums"):
        artifacts.make_checksums()
    return left


@contextmanager
def step(title: str) -> Iterator[None]:
    """Tell what is being done, and how long it took."""
    sys.stderr.write(f"{title} ... ")
    sys.stderr.flush()
    began = time.monotonic()
    yield
    sys.stderr.write(f"{time.monotonic() - began:.1f} s\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
