"""Has problems solved in a process of its own, which may take so much time and memory."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

import msgspec

from berth.insight.certificate.problem import Limits, Problem, Request, Solution, Status

COMMAND: Final = (sys.executable, "-m", "berth.insight.certificate.solver")
SPARE_SECONDS: Final = 20.0
"""Beyond its limit, for imports, the model, and the step that is under way."""
LOOK_SECONDS: Final = 0.2
"""How often it is asked whether the solution is still wanted."""
NOT_INSTALLED: Final = "OR-Tools is not installed; pip install 'berth-scheduler[solver]' does so"

Find = Callable[[Problem, Limits, Callable[[], None]], Solution]
"""As :func:`find`."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Solution).decode


def is_installed() -> bool:
    return find_spec("ortools") is not None


def find(
    problem: Problem,
    limits: Limits,
    look: Callable[[], None] = lambda: None,
    *,
    command: tuple[str, ...] = COMMAND,
) -> Solution:
    """Return what the solver finds; it is OPEN if there is no solver, or if it comes to nothing.

    *look* is called now and then, and may raise to end it.
    """
    if not is_installed():
        return Solution(Status.OPEN, why=NOT_INSTALLED)
    # A file, for of a long input communicate() writes nothing more after its first timeout.
    with tempfile.TemporaryFile() as request:
        request.write(_encode(Request(problem, limits)))
        request.seek(0)
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(command, stdin=request, stdout=pipe, stderr=null) as process:
            try:
                output = _output(process, limits.seconds, look)
            finally:
                process.kill()
    if output is None:
        return Solution(Status.OPEN, why="the time was over")
    if process.returncode:
        return Solution(Status.OPEN, why="the memory was over, or the solver failed")
    return _decode(output)


def _output(
    process: "subprocess.Popen[bytes]", seconds: float, look: Callable[[], None]
) -> bytes | None:
    waited = 0.0
    while waited < seconds + SPARE_SECONDS:
        look()
        try:
            output, _ = process.communicate(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            waited += LOOK_SECONDS
        else:
            return output
    return None
