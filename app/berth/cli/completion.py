"""``berth completion``, and what shells and kubectl complete after ``berth``.

Shells call berth with the line so far (:func:`answer_shell`), kubectl calls
``kubectl_complete-berth`` with its words (:func:`answer_kubectl`). argcomplete reads the line by
the parser of its command, which is the only one that is made; names of pods and nodes are asked of
the cluster, within :data:`PATIENCE`.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, NoReturn

from berth.runtime.addresses import KUBECONFIG
from berth.runtime.printable import printable
from berth.runtime.terminal import program, say_lines

if TYPE_CHECKING:
    from berth.kube.client.api_client import ApiClient

VARIABLE: Final = "_ARGCOMPLETE"
"""Set by shells that complete; its number is that of the word that is the program."""
PATIENCE: Final = 2.0
"""Seconds until a cluster that does not answer has no names."""
MOST: Final = 500
"""Names that are asked for at most."""

Completer = Callable[..., list[str]]


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("completion"), allow_abbrev=False,
        description="Put `source <(berth completion bash)` into ~/.bashrc, the same with zsh into"
        " ~/.zshrc, or `berth completion fish | source` into ~/.config/fish/config.fish.",
    )  # fmt: skip
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    say_lines(shellcode(["berth"], shell=given.shell))
    return 0


def answer_shell(commands: Mapping[str, str]) -> NoReturn:
    """Complete the line of the environment for the shell that asks, and end the process."""
    from argcomplete.finders import CompletionFinder
    from argcomplete.lexers import split_line

    words = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))[3]
    first = int(os.environ[VARIABLE])
    parser = parser_for(words[first:], commands)
    if parser is not None:
        if len(words) > first:  # the command is the program of its parser
            os.environ[VARIABLE] = str(first + 1)
        CompletionFinder()(parser)
    os._exit(1)


def answer_kubectl() -> None:
    """Print what may follow ``kubectl berth`` and the words of the command line."""
    from argcomplete.finders import CompletionFinder

    from berth.cli import COMMANDS

    words = sys.argv[1:] or [""]
    parser = parser_for(words[:-1], COMMANDS)
    said = StringIO()
    if parser is not None:
        line = shlex.join(["berth", *words[:-1]]) + f" {words[-1]}"
        os.environ.update(
            {
                "COMP_LINE": line,
                "COMP_POINT": str(len(line.encode())),
                "_ARGCOMPLETE_IFS": "\n",
                "_ARGCOMPLETE_SHELL": "fish",
                "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
                "_ARGCOMPLETE_DFS": "\t",  # a name, a tab, and what it is, as kubectl wants it
                VARIABLE: "2" if len(words) > 1 else "1",
            }
        )
        CompletionFinder()(parser, output_stream=said, exit_method=lambda _status: None)
    for line in said.getvalue().split("\n"):
        if line:
            sys.stdout.write("\t".join(map(printable, line.split("\t"))) + "\n")
    sys.stdout.write(":4\n")  # kubectl's directive: no files if there is nothing


class _Made(Exception):  # noqa: N818 - not an error
    """A command has made its parser."""


def parser_for(words: Sequence[str], commands: Mapping[str, str]) -> argparse.ArgumentParser | None:
    """Return the parser of the command that *words* begin with, of commands if there are none."""
    if not words:
        parser = argparse.ArgumentParser(prog=program(), add_help=False)
        subparsers = parser.add_subparsers()
        for name, does in commands.items():
            subparsers.add_parser(name, help=does, add_help=False)
        return parser
    command = words[0]
    if command not in commands:
        return None
    made: list[argparse.ArgumentParser] = []

    def take(parser: argparse.ArgumentParser, *_args: object, **_kwargs: object) -> NoReturn:
        made.append(parser)
        raise _Made

    parses = argparse.ArgumentParser.parse_args
    argparse.ArgumentParser.parse_args = take  # type: ignore[method-assign, assignment]
    try:
        import_module(f"berth.cli.{command}").parse([])
    except _Made:
        pass
    finally:
        argparse.ArgumentParser.parse_args = parses  # type: ignore[method-assign]
    (parser,) = made
    for action in parser._actions:
        completer = COMPLETERS.get((command, action.dest))
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined]
    return parser


def pods(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return pods of the given or the default namespace, and others as NAMESPACE/NAME."""
    given = getattr(parsed_args, "namespace", None)
    namespace = given or "default"
    path = f"/api/v1/namespaces/{namespace}/pods" if given else "/api/v1/pods"
    names = _names(path, parsed_args)
    return [name if where == namespace else f"{where}/{name}" for where, name in names]


def qualified_pods(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return all pods as NAMESPACE/NAME."""
    return [f"{where}/{name}" for where, name in _names("/api/v1/pods", parsed_args)]


def nodes(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    return [name for _, name in _names("/api/v1/nodes", parsed_args)]


COMPLETERS: Final[Mapping[tuple[str, str], Completer]] = {
    ("explain", "pod"): pods,
    ("simulate", "remove_pod"): qualified_pods,
    ("simulate", "remove_node"): nodes,
    ("simulate", "cordon_node"): nodes,
    ("simulate", "find_removable"): nodes,
}
"""By command and argument; other values are choices of argparse, or files."""


def _names(path: str, given: argparse.Namespace) -> list[tuple[str, str]]:
    """Return namespaces and names of the objects at *path* of the cluster that is meant."""
    import asyncio

    from berth.kube.kubeconfig import usual_path

    kubeconfig = getattr(given, "kubeconfig", None) or os.environ.get("KUBECONFIG")
    if not kubeconfig:
        kubeconfig = str(KUBECONFIG if KUBECONFIG.exists() else usual_path())

    async def listing() -> bytes:
        from berth.kube.client.connect import connect

        async with asyncio.timeout(PATIENCE):
            context = getattr(given, "context", None)
            client: ApiClient = await connect(kubeconfig=kubeconfig, context=context)
            accepted = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            try:
                return await client.accepting(accepted).request(
                    "GET", path, params={"limit": str(MOST)}
                )
            finally:
                await client.close()

    try:
        return _read(asyncio.run(listing()))
    except Exception:  # noqa: BLE001 - whatever is wrong, there is nothing to complete
        return []


def _read(body: bytes) -> list[tuple[str, str]]:
    import msgspec

    items: list[dict[str, Any]] = msgspec.json.decode(body)["items"]
    return [(item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items]
