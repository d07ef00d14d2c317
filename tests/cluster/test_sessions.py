"""The answers to recorded sessions, compared with a real API server's."""

from collections import Counter

import pytest

from tests.cluster.sessions import SILENT, differences, names

MOST = {"session-102": 8, "session-103": 18, "session-104": 16, "session-105": 29}
MOST_SILENT = {"session-102": 2, "session-103": 8, "session-104": 6, "session-105": 9}
"""What still differs, of some 1,340 requests each; it only becomes less."""


@pytest.mark.parametrize("name", names())
def test_session(name: str) -> None:
    found = list(differences(name))
    count = Counter(difference.kind for difference in found)
    told = "\n".join(map(str, found))
    assert count.total() <= MOST[name], f"{count}\n{told}"
    assert sum(count[kind] for kind in SILENT) <= MOST_SILENT[name], f"{count}\n{told}"
