"""How many volumes are attached to each node, counted as VolumeAttachments come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth_plugins.node_volume_limits import attachments as attachments_module
from berth_plugins.node_volume_limits.attachments import Attachments
from tests.builders import node
from tests.volume_builders import attachment

NODES = [f"n{i}" for i in range(4)]

changes = st.tuples(
    st.sampled_from(["attach", "detach", "add", "remove"]),
    st.sampled_from(NODES),
    st.integers(0, 5),
)


@given(happens=st.lists(changes, max_size=30))
def test_counts_are_those_of_the_attachments_there_are(
    happens: list[tuple[str, str, int]],
) -> None:
    listers, nodes = Listers(), NodeTable()
    attachments = Attachments(listers)
    for what, name, number in happens:
        match what:
            case "attach":
                listers.volume_attachments.on_add(
                    attachment(f"va{number}", node=name, volume=f"pv{number}")
                )
            case "detach":
                known = listers.volume_attachments.get("", f"va{number}")
                if known is not None:
                    listers.volume_attachments.on_delete(known)
            case "add" if name not in nodes.row_of:
                nodes.add_node(node(name))
            case "remove" if name in nodes.row_of:
                nodes.remove_node(nodes.row_of[name])
        there = [
            volume_attachment.spec.node_name for volume_attachment in listers.volume_attachments
        ]
        counts = attachments.counts(nodes)
        assert len(counts) == nodes.size
        assert {each: counts[row] for each, row in nodes.row_of.items()} == {
            each: there.count(each) for each in nodes.row_of
        }


def test_nodes_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments_module, "_MOST_GONE", 0)
    listers, nodes = Listers(), NodeTable()
    attachments = Attachments(listers)
    row = nodes.add_node(node("stays"))
    listers.volume_attachments.on_add(attachment("va", node="stays", volume="pv"))
    assert attachments.counts(nodes)[row] == 1
    for number in range(20):
        passing = attachment("passing", node=f"gone{number}", volume="pv")
        listers.volume_attachments.on_add(passing)
        listers.volume_attachments.on_delete(passing)

    assert attachments.counts(nodes)[row] == 1
    assert len(attachments._numbers) < 5
