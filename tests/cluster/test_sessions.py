"""The answers to recorded sessions, compared with a real API server's."""

from collections import Counter

import pytest

from tests.cluster.sessions import SILENT, differences, names

MOST = {"session-102": 345, "session-103": 310, "session-104": 360, "session-105": 321}
MOST_SILENT = {"session-102": 140, "session-103": 100, "session-104": 150, "session-105": 126}
"""What still differs, of some 1,340 requests each; it only becomes less."""


@pytest.mark.parametrize("name", names())
def test_session(name: str) -> None:
    found = list(differences(name))
    count = Counter(difference.kind for difference in found)
    told = "\n".join(map(str, found))
    assert count.total() <= MOST[name], f"{count}\n{told}"
    assert sum(count[kind] for kind in SILENT) <= MOST_SILENT[name], f"{count}\n{told}"
