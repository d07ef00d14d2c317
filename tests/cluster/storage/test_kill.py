"""A process that writes is killed: what it said was kept is there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.storage.keeping import Kept

pytestmark = pytest.mark.wall

WRITES = """
import asyncio, sys
from pathlib import Path
from tests.cluster.storage.keeping import Kept, obj

async def write(store, writer):
    for number in range(1_000_000):
        name = f"{writer}-{number % 10}"
        write = store.create if number < 10 else store.update
        version = write("pods", obj(name, number=number)).version
        await store.durable()
        print(name, version, number, flush=True)

async def main():
    store = Kept(Path(sys.argv[1]), kept_changes=50).store
    await asyncio.gather(*(write(store, writer) for writer in range(8)))

asyncio.run(main())
"""


def killed(folder: Path, *, after: int) -> dict[str, tuple[int, int]]:
    """Run WRITES until so many writes were acknowledged.

    Return by name the version and number of the last write that was.
    """
    command = [sys.executable, "-c", WRITES, str(folder)]
    said: dict[str, tuple[int, int]] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for count, line in enumerate(process.stdout, start=1):
            if count == after:
                process.kill()
            if line.endswith("\n"):
                name, version, number = line.split()
                said[name] = (int(version), int(number))
    return said


@pytest.mark.parametrize("acknowledged", [1, 30, 1500])
async def test_what_was_acknowledged_is_there_after_a_kill(
    tmp_path: Path, acknowledged: int
) -> None:
    said = killed(tmp_path, after=acknowledged)
    async with Kept(tmp_path) as kept:
        kept.store.check_invariants()
        assert kept.store.version >= max(version for version, _ in said.values())
        for name, (version, number) in said.items():
            found = kept.store.get("pods", "default", name)
            written = found.decode()["spec"]["number"]
            assert (found.version, written) == (version, number) or (
                found.version > version and written == number + 10
            )
