"""Common parts of commands."""

import pytest

from berth.runtime.terminal import Progress


@pytest.mark.parametrize(
    ("moments", "told"),
    [
        pytest.param([0.0, 1.9], [], id="nothing in the first two seconds"),
        pytest.param([1.0, 2.0, 2.5, 3.0], [2.0, 3.0], id="then every second"),
        pytest.param([9.0, 9.5, 30.0], [9.0, 30.0], id="when it gets to it"),
    ],
)
def test_progress(
    moments: list[float], told: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(0.0, is_terminal=True)
    for now in moments:
        progress.tell(now, f"at {now}")

    shown = capsys.readouterr()
    assert shown.err.splitlines() == [f"at {now}" for now in told]
    assert shown.out == ""


def test_no_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Progress(0.0, is_terminal=False).tell(60.0, "at 60")

    assert capsys.readouterr().err == ""
