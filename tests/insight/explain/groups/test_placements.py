"""Three racks and a gang: which one is taken, and why."""

from tests.builders import pod
from tests.insight.explain.groups.asking import explain_group, lines, racks
from tests.scheduler.pod_group.building import group, members


async def test_of_three_racks_the_fuller_of_the_two_that_fit() -> None:
    harness = racks(a=4, b=3, c=1)
    harness.put(group(min_count=4, topology="rack"), *members("w", "x", "y", "z", cpu="1"))

    before = explain_group(harness)
    assert [
        (placement.placement, placement.num_fit, placement.can_start)
        for placement in before.placements
    ] == [
        ("b", 4, True),
        ("a", 4, True),
        ("c", 2, False),
    ]
    b, a, _ = before.placements
    assert b.is_chosen
    assert (b.free, b.allocatable) == ({"cpu": 6000}, {"cpu": 6000})
    # (4 CPUs of 6 and 0.8 GiB of 24) / 2, and (4 of 8 and 0.8 of 32) / 2: members without a
    # request for memory count as 200 MB.
    assert {name: score.weighted for name, score in b.plugins.items()} == {
        "NodeResourcesFit": 34,
        "PodGroupPodsCount": 100,
    }
    assert (b.total, a.total) == (134, 126)
    why = (
        "rack=b (134) before a (126): NodeResourcesFit makes the largest difference (+8), which"
        " prefers the one that will be fuller"
    )
    assert before.choice == why

    await harness.until_idle()
    assert {node[0] for node in harness.placements().values()} == {"b"}
    after = explain_group(harness)
    assert after.choice == why
    assert after.summary == (
        f"podgroup default/g: all 4 pods have nodes; if they had none, they would go to {why}"
    )
    assert after.placements == before.placements
    assert {node[0] for node in harness.placements().values()} == {"b"}


async def test_what_runs_in_a_rack_counts() -> None:
    harness = racks(a=2, b=3)
    harness.put(pod("o1", cpu="1", node="b0"), pod("o2", cpu="1", node="b1"))
    harness.put(group(min_count=3, topology="rack"), *members("x", "y", "z", cpu="1"))

    found = explain_group(harness)
    assert found.choice.startswith("rack=b (")
    assert found.placements[0].free == {"cpu": 4000}


async def test_a_gang_that_no_rack_holds_lacks_most_where_it_fits_best() -> None:
    harness = racks(a=1, b=2)
    harness.put(group(min_count=6, topology="rack"))
    harness.put(*members(*"uvwxyz", cpu="1"))
    await harness.pass_time(2)

    found = explain_group(harness)
    assert [(placement.placement, placement.num_fit) for placement in found.placements] == [
        ("b", 4),
        ("a", 2),
    ]
    assert found.shortage is not None
    assert (found.shortage.pods, found.shortage.resources) == (2, {"cpu": 2000})
    assert (found.shortage.nodes, found.shortage.placement) == (1, "rack=b")
    assert found.shortage.words == (
        "it lacks room for 2 more pods (2000m cpu) in rack=b; 1 more node like b0 would do"
    )
    assert found.evaluation is not None
    assert [node.node for node in found.evaluation.nodes] == ["b0", "b1"]
    told = lines(found)
    assert "rack nodes pods that fit free cpu" in told
    assert "b 2 4 4000m of 4000m too few" in told


async def test_the_only_rack_that_fits() -> None:
    harness = racks(a=1, b=2)
    harness.put(group(min_count=4, topology="rack"), *members("w", "x", "y", "z", cpu="1"))
    assert explain_group(harness).choice == "rack=b, the only one of 2 that holds the group"


async def test_equal_racks_are_left_to_chance() -> None:
    harness = racks(a=1, b=1)
    harness.put(group(min_count=2, topology="rack"), *members("x", "y", cpu="1"))
    found = explain_group(harness)
    assert "chance decides between 2 with the same total" in found.choice


async def test_a_label_that_no_node_has() -> None:
    harness = racks(a=1)
    harness.put(group(min_count=2, topology="zone"), *members("x", "y", cpu="1"))
    await harness.pass_time(2)

    found = explain_group(harness)
    assert found.notes == ("no feasible placements found: no node has the label zone",)
    assert found.notes[0] in found.summary
