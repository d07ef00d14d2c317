"""Results of ``berth lab``: on the disk as runs end, kept by interruptions, added to later."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_lab import LAB

from berth.cli import main
from berth.runtime.terminal import INTERRUPTED, TERMINATED
from berth.tools.lab.curves import RunResult
from berth.tools.lab.load import LabFile
from berth.tools.lab.results import Results

MANY = LAB.replace("seeds: {count: 2}", "seeds: {count: 400}")


def lab_file(folder: Path, text: str = LAB) -> Path:
    path = folder / "run.yaml"
    path.write_text(text)
    return path


def result(policy: str = "pack", seed: int = 1, origin: str = "x") -> RunResult:
    curves = {"imbalance of cpu": {1: 1.0}, "waiting pods": {1: 0.0}}
    return RunResult(policy, seed, "seconds", curves, 20, 0, {}, 0, [0.0] * 4, 0.1, origin)


def done(path: Path, file: Path) -> None:
    """Write the results of all runs of *file*, as if they had been made."""
    origins = LabFile(file).origins()
    with Results(path, resumes=False, origins=origins) as results:
        for seed in (1, 2):
            for policy, origin in origins.items():
                results.add(result(policy, seed, origin))


def test_what_is_done_is_not_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, path = lab_file(tmp_path), tmp_path / "results.jsonl"
    done(path, file)
    before = path.read_bytes()
    monkeypatch.setattr("berth.tools.lab.processes.ProcessPoolExecutor", None)

    assert main(["lab", str(file), f"--results={path}", "--resume"]) == 0
    assert "spread" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_results_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, path = lab_file(tmp_path), tmp_path / "results.jsonl"
    done(path, file)
    before = path.read_bytes()
    assert main(["lab", str(file), f"--results={path}"]) == 2
    assert "has results already; add --resume" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        pytest.param("700m", "800m", False, id="another workload"),
        pytest.param("preset: binpack", "preset: default", False, id="another configuration"),
        pytest.param("seeds: {count: 2}", "seeds: {count: 1}", True, id="fewer seeds"),
        pytest.param("name: two ways", "name: others", True, id="another name"),
    ],
)
def test_results_of_something_else_are_not_mixed_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, *, again: bool
) -> None:
    path = tmp_path / "results.jsonl"
    done(path, lab_file(tmp_path))
    file = lab_file(tmp_path, LAB.replace(old, new))

    assert main(["lab", str(file), f"--results={path}", "--resume"]) == (0 if again else 2)
    message = "line 1: policy 'pack', seed 1: of another workload or configuration"
    assert (message not in capsys.readouterr().err) == again


def test_a_line_that_was_not_finished_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Results(path, resumes=False, origins={}) as results:
        results.add(result(seed=1))
        results.add(result(seed=2))
    path.write_bytes(path.read_bytes()[:-5])

    with Results(path, resumes=True, origins={"pack": "x"}) as results:
        assert [each.seed for each in results.found] == [1]
        results.add(result(seed=2))
    with Results(path, resumes=True, origins={"pack": "x"}) as results:
        assert [each.seed for each in results.found] == [1, 2]


def test_no_results_are_an_error_with_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"policy": 1}\n')
    assert main(["lab", str(lab_file(tmp_path)), f"--results={path}", "--resume"]) == 2
    assert "line 1: no result: Expected `str`, got `int` - at `$.policy`" in capsys.readouterr().err
    assert main(["lab", str(lab_file(tmp_path)), "--resume"]) == 2
    assert "--resume: --results FILE is needed" in capsys.readouterr().err


def lines_of(path: Path) -> list[dict[str, Any]]:
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def group_of(leader: int) -> list[int]:
    """Return the processes of a process group, but for zombies."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(each.parent.name))
    return found


@pytest.mark.wall
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "status"),
    [(signal.SIGTERM, TERMINATED), (signal.SIGINT, INTERRUPTED), (signal.SIGKILL, -9)],
)
def test_an_interruption_keeps_what_is_done_and_leaves_nobody(
    tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    file, path = lab_file(tmp_path, MANY), tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "berth", "lab", str(file), "-j2", f"--results={path}"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not lines_of(path):
        assert started.poll() is None
        time.sleep(0.05)
    os.kill(started.pid, sent)
    out, err = started.communicate(timeout=60)

    assert started.returncode == status
    number = len(lines_of(path))
    assert 0 < number < 800
    if sent != signal.SIGKILL:
        assert f"interrupted after {number} of 800 runs" in err
        assert "--resume does the others" in err
        assert "Traceback" not in err
        assert "imbalance of cpu" in out
    deadline = time.monotonic() + 30
    while group_of(started.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert group_of(started.pid) == []
    file.write_text(MANY.replace("count: 400", f"count: {number // 2 + 2}"))
    assert main(["lab", str(file), "-j2", f"--results={path}", "--resume"]) == 0
    runs = [(line["policy"], line["seed"]) for line in lines_of(path)]
    assert len(runs) == len(set(runs)) >= 2 * (number // 2 + 2)
