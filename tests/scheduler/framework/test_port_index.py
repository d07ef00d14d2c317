"""PortIndex: which rows have a port taken, as rows get and lose ports."""

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.host_ports import ANY_IP, HostPort, conflicts
from berth.scheduler.framework.port_index import PortIndex

ROWS = 3
ports = st.builds(
    HostPort,
    ip=st.sampled_from([ANY_IP, "10.0.0.1", "10.0.0.2", "::"]),
    protocol=st.sampled_from(["TCP", "TCP", "UDP"]),
    port=st.sampled_from([80, 80, 443]),
)
steps = st.lists(st.tuples(st.booleans(), st.integers(0, ROWS - 1), ports), max_size=20)


@settings(max_examples=60)
@given(steps, st.lists(ports, min_size=1, max_size=3))
def test_a_port_is_taken_where_it_conflicts_with_one_in_use(
    changes: list[tuple[bool, int, HostPort]], asked: list[HostPort]
) -> None:
    index, used = PortIndex(), [set[HostPort]() for _ in range(ROWS)]
    for adds, row, port in changes:
        if adds:
            index.add(row, [port])
            used[row].add(port)
        else:  # one of two pods that have the same port frees it
            index.remove(row, [port])
            used[row].discard(port)
        for wanted in asked:
            taken = index.taken(wanted, ROWS)
            want = [conflicts([wanted], in_use) for in_use in used]
            assert (taken.tolist() if taken is not None else [False] * ROWS) == want


def test_an_answer_stays_as_it_is_and_a_new_row_has_nothing_taken() -> None:
    index, port = PortIndex(), HostPort(ANY_IP, "TCP", 80)
    index.add(0, [port])
    before = index.taken(port, 2)
    index.add(1, [port])
    after = index.taken(port, 3)
    assert before is not None
    assert after is not None
    assert (before.tolist(), after.tolist()) == ([True, False], [True, True, False])
