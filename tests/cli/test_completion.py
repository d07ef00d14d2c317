"""What shells and kubectl are told may follow; names come from a running cluster."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.cli import COMMANDS
from berth.cli.completion import COMPLETERS, parser_for
from berth.cluster import Cluster

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "large"},
    "spec": {"containers": [{"name": "main", "image": "registry.example.com/large:1"}]},
}
PODS = [POD, {**POD, "metadata": {"name": "coredns", "namespace": "kube-system"}}]


def completed(line: str, tmp_path: Path, **environment: str) -> list[str]:
    """Return what a shell is told at the end of *line*; it ends with a space after the last."""
    told = tmp_path / "told"
    told.touch()
    subprocess.run(
        [sys.executable, "-m", "berth"],
        env={
            **os.environ,
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(told),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            **environment,
        },
        cwd=tmp_path,
        check=False,
        capture_output=True,
    )
    return told.read_text("utf-8").split("\n") if told.stat().st_size else []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param("berth ex", ["extender", "explain"], id="commands"),
        pytest.param("berth explain --out", ["--output"], id="flags of the command"),
        pytest.param("berth explain --output ", ["table", "json", "yaml"], id="values of a flag"),
        pytest.param("berth plugin n", ["new"], id="commands of a command"),
        pytest.param("berth run --leader-elect-lease", ["--leader-elect-lease-duration"], id="run"),
        pytest.param("berth no-such --", [], id="nothing after what is no command"),
    ],
)
def test_a_line(line: str, told: list[str], tmp_path: Path) -> None:
    assert completed(line, tmp_path) == told


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_parser(command: str) -> None:
    parse_args = argparse.ArgumentParser.parse_args
    parser = parser_for([command], COMMANDS)
    assert parser is not None
    assert parser.prog == f"berth {command}"
    assert argparse.ArgumentParser.parse_args is parse_args


def test_arguments_with_names_exist() -> None:
    for command, argument in COMPLETERS:
        parser = parser_for([command], COMMANDS)
        assert parser is not None
        assert argument in {action.dest for action in parser._actions}


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[str]:
    with Cluster(nodes=2, load=PODS) as cluster:
        yield str(cluster.kubeconfig)


@pytest.mark.wall
@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param("explain ", {"large", "kube-system/coredns"}, id="pods"),
        pytest.param("explain -n kube-system ", {"coredns"}, id="pods of a namespace"),
        pytest.param("simulate --remove-pod d", {"default/large"}, id="pods with namespaces"),
        pytest.param("simulate --remove-node no", {"node-0", "node-1"}, id="nodes"),
    ],
)
def test_names_of_a_cluster(words: str, told: set[str], kubeconfig: str, tmp_path: Path) -> None:
    names = {
        name
        for name in completed(f"berth {words}", tmp_path, KUBECONFIG=kubeconfig)
        if not name.startswith("-")
    }
    assert names == told


def test_a_cluster_that_is_not_there_has_no_names(tmp_path: Path) -> None:
    assert completed("berth simulate --remove-node n", tmp_path, KUBECONFIG="none") == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(["shad"], ["shadow\treport how a shadow compares"], id="a command"),
        pytest.param(["shadow", "report", "--outp"], ["--output\t"], id="a flag"),
        pytest.param(["no-such", ""], [], id="nothing"),
    ],
)
def test_kubectl(words: list[str], told: list[str]) -> None:
    program = "from berth.cli.completion import answer_kubectl; answer_kubectl()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], check=True, capture_output=True, text=True
    )
    *lines, directive = done.stdout.splitlines()
    assert directive == ":4"
    assert len(lines) == len(told)
    assert all(line.startswith(begin) for line, begin in zip(lines, told, strict=True))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    done = subprocess.run(
        [sys.executable, "-m", "berth", "completion", shell], check=True, capture_output=True
    )
    assert b"berth" in done.stdout
    subprocess.run([shell, "-n"], input=done.stdout, check=True)


ASKED = {
    "bash": 'COMP_LINE="berth expl"; COMP_POINT=10; COMP_TYPE=9; _python_argcomplete berth; '
    'echo "${COMPREPLY[@]}"',
    "fish": 'complete --do-complete "berth expl"',
}


@pytest.mark.parametrize("shell", ASKED)
def test_a_shell_completes(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    berth = tmp_path / "berth"
    berth.write_text(f'#!/bin/sh\nexec {sys.executable} -m berth "$@"\n', encoding="utf-8")
    berth.chmod(0o755)
    script = (
        "berth completion fish | source" if shell == "fish" else 'eval "$(berth completion bash)"'
    )
    told = subprocess.check_output(
        [shell, "-c", f"{script}; {ASKED[shell]}"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        text=True,
    )
    assert told.split()[:1] == ["explain"]
