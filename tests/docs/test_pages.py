"""What the pages name is there: links, anchors, files, commands, flags, targets of make."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest
import yaml

from berth import cli
from berth.tools.bench.steps import STEPS
from tests.docs.pages import DOCS, ROOT, Page, blocks, pages

FLAG = re.compile(r"(?<![\w-])(--?[a-z][\w-]*)")
GROUPS = {"bench": tuple(STEPS), "plugin": ("new", "list"), "shadow": ("report",)}
"""Commands that have commands."""
IN_THE_TREE = ("app/", "compose/", "examples/", "helm/", "plugins/", "tests/")
OTHERS = {
    "--as", "--name", "--namespace", "--no-deps", "--profile", "--raw", "--set", "--tag",
    "--watch-cache",
}  # fmt: skip
"""Flags in prose that are of helm, kubectl, docker, pip and kube-apiserver."""


BESIDE = tuple(
    Page(path)
    for folder in (".", "examples", "examples/*", "app/berth/*", "helm/berth")
    for path in sorted(ROOT.glob(f"{folder}/*.md"))
)
"""Pages that are not of the site."""


@pytest.mark.parametrize(
    "page", [*pages(), *BESIDE], ids=lambda page: page.path.relative_to(ROOT).as_posix()
)
def test_links_lead_somewhere(page: Page) -> None:
    broken = []
    for link in page.links():
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        is_there = target.is_file() and (not anchor or anchor in Page(target).anchors())
        is_there |= target.is_dir() and page in BESIDE  # the site has no folders
        if not is_there:
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Page) -> None:
    named = {code.rstrip("/") for code in page.code() if code.startswith(IN_THE_TREE)}
    assert [name for name in sorted(named) if not any(ROOT.glob(name))] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_is_reached_from_the_index(page: Page) -> None:
    index = Page(DOCS / "index.md")
    assert page.name == index.name or page.name in index.links()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_has_no_conflict_of_a_merge(page: Page) -> None:
    assert not re.search(r"^(<{7}|={7}|>{7})", page.text, re.MULTILINE)


def test_flags_of_commands_exist() -> None:
    wrong = []
    for where, line in commands():
        command, *rest = line.split()[1:]
        if rest and rest[0] in GROUPS.get(command, ()):
            command = f"{command} {rest[0]}"
        words = [word for word in shlex.split(line) if word.startswith("-") and word != "-"]
        given = {word.partition("=")[0] for word in words}
        wrong += [f"{where}: berth {command} {flag}" for flag in given - flags_of(command)]
    assert not wrong


def test_flags_in_prose_exist() -> None:
    known = OTHERS.union(*(flags_of(command) for command in every_command()))
    wrong = [
        f"{page.name}: {code}"
        for page in pages()
        for code in page.code()
        if code.startswith("--") and not known.issuperset(FLAG.findall(code))
    ]
    assert not wrong


def test_every_command_is_told_of() -> None:
    told = {line.split()[1] for _, line in commands() if len(line.split()) > 1}
    assert cli.COMMANDS.keys() <= told


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    told = {
        command.line.split()[1]
        for block in blocks("console")
        for command in block.commands()
        if command.line.startswith("make ")
    }
    assert told
    assert told <= targets


def test_services_of_compose_exist() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    profiles = {profile for service in services.values() for profile in service.get("profiles", ())}
    lines = [command.line for block in blocks("console") for command in block.commands()]
    lines += [code for page in pages() for code in page.code()]
    composed = [line.split()[2:] for line in lines if line.startswith("docker compose ")]
    assert composed
    for words in composed:
        named = [word.partition(":")[0] for word in words if word[0] not in "-."]
        known = {"up", "kill", "cp"} | profiles
        assert [word for word in named if word not in known and word not in services] == []


def commands() -> Iterator[tuple[str, str]]:
    """Yield every call of ``berth`` that the pages show, with its place."""
    for block in blocks("console"):
        for command in block.commands():
            for part in re.split(r"[|;&()]+|\$\(", command.line.replace("\\\n", " ")):
                if part.split()[:1] == ["berth"]:
                    yield block.where, part
    for page in pages():
        for code in page.code():
            if code.startswith("berth "):
                yield page.name, code


def every_command() -> Iterator[str]:
    for command in cli.COMMANDS:
        yield command
        yield from (f"{command} {sub}" for sub in GROUPS.get(command, ()))


@cache
def flags_of(command: str) -> frozenset[str]:
    """Return the flags that ``berth COMMAND --help`` tells of."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        cli.main([*command.split(), "--help"])
    return frozenset(FLAG.findall(said.getvalue())) | {"--help"}
