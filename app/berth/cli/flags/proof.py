"""Flags about proofs: whether a solver is asked, and what it may take."""

import argparse
from typing import TYPE_CHECKING, Final

from berth.runtime.terminal import positive

if TYPE_CHECKING:
    from berth.insight.certificate.problem import Limits

SECONDS: Final = 30
MEMORY: Final = 4096


def add_proof_flags(group: argparse._ActionsContainer, when: str) -> None:
    """Add ``--prove`` and its limits; *when* says what it goes with."""
    group.add_argument(
        "--prove", action="store_true",
        help=f"{when}: have a solver look for the best, and say how far from it the answer can be."
        " Needs the extra: pip install 'berth-scheduler[solver]'; without, the bound is counted",
    )  # fmt: skip
    group.add_argument(
        "--solver-seconds", type=positive, default=SECONDS, metavar="SECONDS",
        help="how long the solver may take; default: %(default)s",
    )  # fmt: skip
    group.add_argument(
        "--solver-memory", type=positive, default=MEMORY, metavar="MIB",
        help="how much memory the solver may take; default: %(default)s",
    )  # fmt: skip


def limits(given: argparse.Namespace) -> "Limits | None":
    """Return what the solver may take; None if no proof is asked for."""
    from berth.insight.certificate.problem import Limits

    if not given.prove:
        return None
    return Limits(seconds=float(given.solver_seconds), memory=given.solver_memory << 20)
