"""The answers to recorded sessions, compared with a real API server's."""

from collections import Counter

import pytest

from tests.cluster.sessions import SILENT, differences, names

MOST = {"session-102": 1, "session-103": 2, "session-104": 0, "session-105": 3}
"""What still differs, of some 1,340 requests each; it only becomes less. None of it is silent."""


@pytest.mark.parametrize("name", names())
def test_session(name: str) -> None:
    found = list(differences(name))
    count = Counter(difference.kind for difference in found)
    told = "\n".join(map(str, found))
    assert count.total() <= MOST[name], f"{count}\n{told}"
    assert not any(count[kind] for kind in SILENT), f"{count}\n{told}"
