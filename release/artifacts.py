"""The artifacts of a release: how each is made in ``dist/``, and tried.

All but the image is the same, byte for byte, when it is made again: archives have no times and
owners.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from release.commands import (
    DIST,
    ROOT,
    ReleaseError,
    install,
    install_berth,
    new_environment,
    run,
)
from release.readme import absolute

CHANGELOG: Final = ROOT / "CHANGELOG.md"
CHART: Final = ROOT / "helm" / "berth"
LOCK: Final = ROOT / "requirements.lock"
FILES: Final = Path(__file__).parent
EXAMPLES: Final = ROOT / "examples"

EXPLAIN: Final = ("explain", "-f", EXAMPLES / "snapshot.json", "--pod", "default/large")
EXPLAINED: Final = "nearest miss  reserved: remove taint team=search:NoSchedule"
UP: Final = (
    "up", "--nodes", "2", "--load", EXAMPLES / "upgrade" / "workload.yaml", "--exit-when-idle",
    "--port", "0", "--debug-port", "0",
)  # fmt: skip
"""An embedded cluster with a scheduler, which ends when all pods are placed."""


def make_notes(version: str, address: str) -> None:
    """Write what the changelog says of this release, with links to the files at *address*."""
    sections = re.split(r"^## \[(.+?)\].*\n", CHANGELOG.read_text("utf-8"), flags=re.MULTILINE)
    notes = dict(zip(sections[1::2], sections[2::2], strict=True))
    text = notes.get(version, notes["Unreleased"])
    text = re.sub(r"\n\[.+\]: .*", "", text).strip()
    text = absolute(text, address, version)
    (DIST / "NOTES.md").write_text(f"{text}\n", "utf-8")


def make_distributions() -> tuple[Path, Path]:
    """Build the wheel and the source distribution."""
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    return _only(DIST, "*.whl"), _only(DIST, "berth_scheduler-*.tar.gz")


def try_wheel(wheel: Path, version: str, scratch: Path) -> Path:
    """Install the wheel, explain a pod and run a cluster; return the Python that has it."""
    python = new_environment(scratch / "env")
    install_berth(python, wheel)
    _try_berth(python.parent / "berth", version, scratch)
    run(python.parent / "berth", *UP, cwd=scratch)
    return python


def try_readme(wheel: Path, version: str, address: str) -> None:
    """Read what the package index shows: what it links to is elsewhere, or in the repository."""
    with zipfile.ZipFile(wheel) as packed:
        [name] = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = BytesParser().parsebytes(packed.read(name))
    if metadata["Description-Content-Type"] != "text/markdown":
        raise ReleaseError("the readme of the wheel is not Markdown")
    tokens = MarkdownIt().parse(str(metadata.get_payload()))
    inline = [child for token in tokens for child in token.children or ()]
    links = {str(t.attrs[key]) for t in inline for key in ("href", "src") if key in t.attrs}
    ours = re.compile(rf"{re.escape(address)}/(?:blob|raw)/v{re.escape(version)}/([^#]+)")
    named = [match[1] for match in map(ours.fullmatch, links) if match]
    bad = {link for link in links if not link.startswith("https://")}
    bad |= {path for path in named if not (ROOT / path).exists()}
    if bad or not named:
        raise ReleaseError(f"the readme of the wheel leads nowhere: {', '.join(sorted(bad))}")


def try_source(sdist: Path, wheel: Path, version: str, scratch: Path) -> None:
    """Build the wheel again from the source distribution, and install that."""
    scratch.mkdir()
    _unpack(sdist, scratch)
    run(
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", scratch,
        cwd=_only(scratch, "berth_scheduler-*"),
    )  # fmt: skip
    built = _only(scratch, "*.whl")
    if built.read_bytes() != wheel.read_bytes():
        raise ReleaseError("the source distribution builds another wheel")
    python = new_environment(scratch / "env")
    install_berth(python, built)
    _try_berth(python.parent / "berth", version, scratch)


def make_bill_of_materials(python: Path) -> None:
    """Write what is installed beside berth, and check that it is what is locked."""
    path = DIST / "berth.cdx.json"
    run(
        sys.executable, "-m", "cyclonedx_py", "environment", python, "--pyproject",
        ROOT / "pyproject.toml", "--output-reproducible", "--of", "JSON", "-o", path,
    )  # fmt: skip
    components = json.loads(path.read_text("utf-8"))["components"]
    listed = {(component["name"].lower(), component["version"]) for component in components}
    locked = set(re.findall(r"^([a-z\d.-]+)==([^ ;]+)", LOCK.read_text("utf-8"), re.MULTILINE))
    normal = {(re.sub("[-_.]+", "-", name), version) for name, version in listed}
    normal -= {item for item in normal if item[0] == "berth-scheduler"}
    if not normal or not normal <= locked:
        raise ReleaseError(f"the bill of materials has what is not locked: {normal - locked}")


def make_krew_plugin(wheel: Path, version: str, scratch: Path) -> None:
    """Pack what krew installs, with its manifest, and call it by a link, as kubectl does."""
    archive = DIST / f"kubectl-berth-{version}.tar.gz"
    files = (FILES / "kubectl-berth", LOCK, wheel, ROOT / "LICENSE")
    _pack(archive, {file.name: file for file in files})
    manifest = (FILES / "krew.yaml").read_text("utf-8")
    manifest = manifest.partition("\n")[2]  # the comment is about the template
    values = {"VERSION": version, "ARCHIVE": archive.name, "SHA256": _sha256(archive)}
    for name, value in values.items():
        manifest = manifest.replace(f"${name}", value)
    (DIST / "krew.yaml").write_text(manifest, "utf-8")
    store = scratch / "store"
    store.mkdir(parents=True)
    _unpack(archive, store)
    link = scratch / "kubectl-berth"
    link.symlink_to(store / "kubectl-berth")
    _try_berth(link, version, scratch, KUBECTL_BERTH_PYTHON=sys.executable)


def make_chart(version: str, scratch: Path) -> None:
    """Pack the chart and render it as unpacked; with helm itself, where it is installed."""
    archive = DIST / f"berth-{version}.tgz"
    files = {f"berth/{path.relative_to(CHART)}": path for path in CHART.rglob("*")}
    _pack(archive, {name: path for name, path in files.items() if path.is_file()})
    scratch.mkdir()
    _unpack(archive, scratch)
    render = "from tests.helm.rendering import render; print(*(o['kind'] for o in render()))"
    kinds = run(
        sys.executable, "-c", render, PYTHONPATH=str(ROOT), BERTH_CHART=str(scratch / "berth")
    )
    if "Deployment" not in kinds.split():
        raise ReleaseError(f"the chart renders {kinds}")
    if shutil.which("helm"):
        required = ("--set", "image.repository=registry.example.com/berth")
        run("helm", "lint", "--strict", archive, *required)
        run("helm", "template", "berth", archive, *required)


def make_man_pages(python: Path, version: str, scratch: Path) -> None:
    """Write one page per command, and format each, where there is a formatter."""
    scratch.mkdir()
    run(python, "-m", "docs.generate.man", scratch, PYTHONPATH=str(ROOT))
    pages = sorted(scratch.glob("*.1"))
    if not pages:
        raise ReleaseError("there are no man pages")
    if shutil.which("groff"):
        for page in pages:
            run("groff", "-man", "-Tutf8", "-z", "-ww", page)
    _pack(DIST / f"berth-man-{version}.tar.gz", {f"man1/{page.name}": page for page in pages})


def make_site(wheel: Path, version: str, scratch: Path) -> None:
    """Build the documentation; Sphinx complains about links that lead nowhere."""
    install(Path(sys.executable), "--no-deps", "--no-index", "--force-reinstall", wheel)
    run(
        sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", scratch / "doctrees",
        ROOT / "docs", scratch / "html",
    )  # fmt: skip
    files = [path for path in (scratch / "html").rglob("*") if path.is_file()]
    folder = f"berth-docs-{version}"
    members = {f"{folder}/{path.relative_to(scratch / 'html')}": path for path in files}
    if f"{folder}/index.html" not in members:
        raise ReleaseError("the documentation has no index")
    _pack(DIST / f"{folder}.tar.gz", members)


def container_engine() -> str | None:
    """Return the container engine that answers here, if one does."""
    for engine in ("docker", "podman"):
        if shutil.which(engine):
            try:
                run(engine, "info")
            except ReleaseError:
                continue
            return engine
    return None


def make_image(engine: str, version: str, scratch: Path) -> None:
    """Build the image and save it; forget it, load it and run it.

    The environment variable ``PYTHON_IMAGE`` names another base image than the Dockerfile.
    """
    tag = f"localhost/berth:{version}"  # not one that somebody uses here
    archive = DIST / f"berth-{version}-image.tar.gz"
    base = os.environ.get("PYTHON_IMAGE")
    run(engine, "build", *(("--build-arg", f"PYTHON={base}") if base else ()), "-t", tag, ".")
    scratch.mkdir()
    run(engine, "save", "-o", scratch / "image.tar", tag)
    with (scratch / "image.tar").open("rb") as saved, gzip.open(archive, "wb", 6) as packed:
        shutil.copyfileobj(saved, packed, 1 << 20)
    run(engine, "image", "rm", tag)
    run(engine, "load", "-i", archive)
    said = run(engine, "run", "--rm", "--read-only", "--network=none", tag, "version")
    if said != f"berth {version}\n":
        raise ReleaseError(f"the image says it is {said!r}")


def make_checksums() -> None:
    """Write the checksums of all artifacts, as ``sha256sum --check`` reads them."""
    lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(lines), "utf-8")
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)


def _try_berth(program: Path, version: str, folder: Path, **variables: str) -> None:
    """Ask *program* for its version and about a pod."""
    said = run(program, "version", cwd=folder, **variables)
    if said != f"berth {version}\n":
        raise ReleaseError(f"{program} says it is {said!r}")
    said = run(program, *EXPLAIN, cwd=folder, **variables)
    if EXPLAINED not in said:
        raise ReleaseError(f"{program} explains:\n{said}")


def _only(folder: Path, pattern: str) -> Path:
    paths = list(folder.glob(pattern))
    if len(paths) != 1:
        raise ReleaseError(f"{folder} has {len(paths)} times {pattern}")
    return paths[0]


def _pack(archive: Path, files: dict[str, Path]) -> None:
    """Write *files*, by their names in it, as a .tar.gz that is the same whenever it is made."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            member.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            with path.open("rb") as content:
                tar.addfile(member, content)
    archive.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
