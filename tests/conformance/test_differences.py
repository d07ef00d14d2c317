"""What the documentation says of the recorded decisions under the latest release."""

import json

import pytest

from docs.generate.releases import DIFFERENCES
from tests.conformance.differences import differences


@pytest.mark.slow
def test_every_difference_is_explained_by_a_section() -> None:
    written = json.loads(DIFFERENCES.read_text(encoding="utf-8"))
    assert differences() == written, "run `python -m tests.conformance.differences`"
