"""The ``berth`` command: chooses the subcommand, turns errors into messages and exit statuses."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Final

from berth.runtime.errors import UserError
from berth.runtime.printable import printable, printable_lines
from berth.runtime.terminal import INTERRUPTED, CommandError, program, say_lines

COMMANDS: Final = {
    "run": "schedule the pods of a Kubernetes cluster",
    "up": "start an embedded cluster, hollow nodes and a scheduler on this machine",
    "cluster": "start an embedded cluster without nodes and scheduler",
    "kubelets": "add hollow nodes to any API server",
    "extender": "serve as an extender of kube-scheduler",
    "explain": "explain why a pod is pending, or why it runs where it does",
    "ui": "show a running scheduler in the browser",
    "plugin": "create a plugin, or list the known plugins",
    "simulate": "answer what-if questions: more pods, other nodes, another configuration",
    "replay": "make the decisions of a recording again, and show which differ",
    "rebalance": "propose evictions: pods that fit, empty nodes, less skew; and carry them out",
    "shadow": "report how a shadow compares with the scheduler of a cluster",
    "lab": "compare policies on a workload: allocation, fragmentation, waiting",
    "tune": "search a configuration that does better on a recording or a workload",
    "completion": "print what makes a shell complete commands, flags and names",
    "health": "check whether a process is ready, for container health checks",
    "bench": "measure scheduling on this machine",
    "version": "print the version",
}
"""Each is a module: ``parse`` reads its arguments, ``run`` does what they ask for."""

HELP: Final = ("-h", "--help")

SPARED: Final = {
    "OPENBLAS_NUM_THREADS": "1",  # NumPy would start threads, which nothing uses
    "PYDANTIC_DISABLE_PLUGINS": "true",  # pydantic would look for some in all installed packages
}
"""Environment of libraries that otherwise do at start what berth does not need."""


def usage() -> str:
    what = "\n".join(f"  {command:<12}{does}" for command, does in COMMANDS.items())
    name = program()
    hint = (
        f"`{name} COMMAND --help` lists the flags of a command, `{name} --version` prints the"
        " version."
    )
    return f"usage: {name} COMMAND [flags]\n\n{what}\n\n{hint}"


def main(argv: Sequence[str]) -> int:
    """Run one command; return its exit status (2: wrong usage or configuration)."""
    if "_ARGCOMPLETE" in os.environ:
        import_module("berth.cli.completion").answer_shell(COMMANDS)
    name, *rest = argv or HELP
    if name == "help" and rest and rest[0] not in HELP:
        name, rest = rest[0], ["--help"]
    if name in (*HELP, "help"):
        say_lines(usage())
        return 0
    if name == "--version":
        name = "version"
    if name not in COMMANDS:
        return _complain(_unknown(name), status=2)
    try:
        return execute(name, rest)
    except UserError as exc:
        return _complain(f"{program(name)}: {exc}", status=2)
    except CommandError as exc:
        return _complain(f"{program(name)}: {exc}", status=1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as exc:
        from berth.kube.client.errors import ApiError  # which help does not wait for

        if not isinstance(exc, ApiError):
            raise
        return _complain(f"{program(name)}: {printable(str(exc))}", status=1)


def execute(command: str, argv: Sequence[str]) -> int:
    """Run *command*; return its exit status, or raise what :func:`main` tells people.

    What it needs is imported only after *argv* was parsed: help and wrong usage are told at once.
    """
    module = import_module(f"berth.cli.{command}")
    given = module.parse(argv)
    for name, value in SPARED.items():
        os.environ.setdefault(name, value)
    status: int = module.run(given)
    return status


@contextmanager
def importing() -> Iterator[None]:
    """Keep the garbage collector off in a block that imports.

    Imports make no garbage, and looking for it takes a fifth of their time. Nor does it look at
    what they made afterwards: all of it stays.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _unknown(name: str) -> str:
    """Say that *name* is not a command; with the command that was probably meant."""
    near = get_close_matches(name, COMMANDS, n=1)
    help_ = f"did you mean `{program(near[0])}`?" if near else usage()
    return f"{program()}: {name!r} is not a command\n\n{help_}"


def _complain(message: str, *, status: int) -> int:
    print(printable_lines(message), file=sys.stderr)
    return status
