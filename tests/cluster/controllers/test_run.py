"""Which controllers run."""

import pytest

from berth.cluster.controllers.run import (
    CONTROLLERS,
    NAMES,
    is_enabled,
    read_controllers,
)


@pytest.mark.parametrize(
    ("said", "enabled"),
    [
        ("*", set(CONTROLLERS)),
        ("*,-job-controller", set(CONTROLLERS) - {"job-controller"}),
        ("-job,*", set(CONTROLLERS) - {"job-controller"}),
        ("job-controller,-job-controller,*", set(CONTROLLERS)),
        ("job,cronjob", {"job-controller", "cronjob-controller"}),
        ("*,-ttl", set(CONTROLLERS)),
        ("", set()),
    ],
)
def test_enabled(said: str, enabled: set[str]) -> None:
    controllers = read_controllers(said)
    assert {name for name in CONTROLLERS if is_enabled(name, controllers)} == enabled


@pytest.mark.parametrize("said", ["*,jobs", "-*", "*,-"])
def test_names_that_nobody_has(said: str) -> None:
    with pytest.raises(ValueError, match="is not in the list of known controllers"):
        read_controllers(said)


def test_aliases_are_of_controllers() -> None:
    assert set(NAMES.aliases.values()) <= CONTROLLERS.keys() | NAMES.not_here
    assert not NAMES.aliases.keys() & CONTROLLERS.keys()
