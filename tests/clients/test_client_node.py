"""The official JavaScript client's informer. It needs Node.js and the npm registry."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.clients import FOREIGN_AND_SLOW

pytestmark = FOREIGN_AND_SLOW

PACKAGE: Final = "@kubernetes/client-node@1"
SCRIPT: Final = Path(__file__).parent / "informer.mjs"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the script, beside the client that it imports; skip where that cannot be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("NOT TESTED: @kubernetes/client-node, because Node.js is not installed")
    folder = tmp_path_factory.mktemp("node")
    installed = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--no-save", f"--prefix={folder}", PACKAGE],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"NOT TESTED: @kubernetes/client-node, because npm says {installed.stderr}")
    return Path(shutil.copy(SCRIPT, folder))


def test_an_informer_sees_a_pod_from_its_creation_to_its_end(
    kubeconfig: Path, namespace: str, script: Path
) -> None:
    ran = subprocess.run(
        ["node", script, kubeconfig, namespace],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = list(dict.fromkeys(ran.stdout.splitlines()))
    assert (lines, ran.stderr) == (["add one", "running one", "delete one"], "")
