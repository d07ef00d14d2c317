"""Kinds of locks that kube-scheduler once knew are refused; the message names what is left."""

import pytest

from berth import cli


@pytest.mark.parametrize("kind", ["endpoints", "configmaps", "endpointsleases", "configmapsleases"])
def test_an_older_kind_is_refused(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", f"--leader-elect-resource-lock={kind}"]) == 2

    assert capsys.readouterr().err.endswith(
        f'leaderElection.resourceLock: Invalid value: "{kind}":'
        ' resourceLock value must be "leases"\n'
    )
