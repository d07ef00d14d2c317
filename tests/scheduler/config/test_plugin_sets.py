"""Merging plugin lists, and expanding multiPoint (spec §1.5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.config.defaults import DEFAULT_PLUGINS
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.plugin_sets import Implements, expand, expand_profiles, merge_profile
from berth.scheduler.config.types import (
    ExtensionPoint,
    KubeSchedulerProfile,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
)
from tests.scheduler.config.plugin_args import IMPLEMENTS


def entries(text: str) -> tuple[PluginEntry, ...]:
    """Read ``A B=3``."""
    pairs = [word.partition("=") for word in text.split()]
    return tuple(PluginEntry(name=name, weight=int(weight or 0)) for name, _, weight in pairs)


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=entries(enabled), disabled=entries(disabled))


def plugins(**sets: PluginSet) -> Plugins:
    """A profile that can run: it sorts and binds, by plugins of its own points."""
    return Plugins(**{"queue_sort": plugin_set("Sort"), "bind": plugin_set("Binder"), **sets})


@pytest.mark.parametrize(
    ("custom", "default", "merged"),
    [
        pytest.param(plugin_set(), plugin_set("A B"), plugin_set("A B"), id="nothing to merge"),
        pytest.param(
            plugin_set("C"), plugin_set("A B"), plugin_set("A B C"), id="added at the end"
        ),
        pytest.param(
            plugin_set("C B=5 A=6"),
            plugin_set("A=1 B=2"),
            plugin_set("A=6 B=5 C"),
            id="replaced in place, in the order of the defaults",
        ),
        pytest.param(
            plugin_set("", "A=7"), plugin_set("A B"), plugin_set("B", "A"), id="one is disabled"
        ),
        pytest.param(
            plugin_set("A=4", "A"),
            plugin_set("A=1 B"),
            plugin_set("B A=4", "A"),
            id="disabled and enabled: moved to the end",
        ),
        pytest.param(
            plugin_set("B C", "*"),
            plugin_set("A B"),
            plugin_set("B C", "*"),
            id="all defaults are disabled",
        ),
        pytest.param(
            plugin_set("", "A"),
            plugin_set("A B C", "B"),
            plugin_set("C", "A B"),
            id="what the defaults disable is disabled too",
        ),
        pytest.param(
            plugin_set("A=3 A=4"),
            plugin_set("A=1 B"),
            plugin_set("A=4 B A=3"),
            id="given twice: the last replaces, the other stays",
        ),
    ],
)
def test_merging_one_set(custom: PluginSet, default: PluginSet, merged: PluginSet) -> None:
    assert merge_profile(Plugins(score=custom), Plugins(score=default)) == Plugins(score=merged)


def test_each_set_is_merged_with_its_own() -> None:
    custom = Plugins(multi_point=plugin_set("X"), filter=plugin_set("Y"))
    default = Plugins(multi_point=plugin_set("A"), placement_score=plugin_set("B"))
    assert merge_profile(custom, default) == Plugins(
        multi_point=plugin_set("A X"),
        filter=plugin_set("Y"),
        placement_score=plugin_set("B"),
    )


SMALL: Implements = {
    ExtensionPoint.QUEUE_SORT: ["Sort", "Other"],
    ExtensionPoint.BIND: ["Binder"],
    ExtensionPoint.FILTER: ["A", "B", "C", "D"],
    ExtensionPoint.SCORE: ["A", "B", "C", "D"],
    ExtensionPoint.PLACEMENT_GENERATE: ["P", "Q"],
    ExtensionPoint.PERMIT: ["OnlyPermit"],
}


@pytest.mark.parametrize(
    ("sets", "want"),
    [
        pytest.param({}, [], id="nothing is enabled"),
        pytest.param(
            {"multi_point": plugin_set("B=2 A Sort OnlyPermit")},
            [("B", 2), ("A", 1)],
            id="multiPoint: those that implement it, in its order; no weight is 1",
        ),
        pytest.param(
            {"score": plugin_set("C=3"), "multi_point": plugin_set("A=2")},
            [("A", 2), ("C", 3)],
            id="after multiPoint what only the point enables",
        ),
        pytest.param(
            {"score": plugin_set("D C=5 A=7"), "multi_point": plugin_set("A=2 B=2 C=2")},
            [("C", 5), ("A", 7), ("B", 2), ("D", 1)],
            id="overrides first, in the order of the point, with its weights",
        ),
        pytest.param(
            {"score": plugin_set("A"), "multi_point": plugin_set("A=2")},
            [("A", 1)],
            id="an override without a weight weighs 1",
        ),
        pytest.param(
            {"score": plugin_set("", "A"), "multi_point": plugin_set("A B")},
            [("B", 1)],
            id="disabled at the point",
        ),
        pytest.param(
            {"score": plugin_set("A=4", "A"), "multi_point": plugin_set("A=2 B")},
            [("B", 1), ("A", 4)],
            id="disabled and enabled at the point: no override, but after the others",
        ),
        pytest.param(
            {"score": plugin_set("C A", "*"), "multi_point": plugin_set("A=9 B")},
            [("C", 1), ("A", 1)],
            id="all disabled: only what the point enables",
        ),
        pytest.param(
            {"score": plugin_set("A", "*"), "multi_point": plugin_set("A B B")},
            [("A", 1)],
            id="multiPoint's duplicates do not matter where it is ignored",
        ),
        pytest.param(
            {"score": plugin_set("A=-3"), "multi_point": plugin_set("")},
            [("A", -3)],
            id="a negative weight is one",
        ),
    ],
)
def test_expanding_score(sets: dict[str, PluginSet], want: list[tuple[str, int]]) -> None:
    # multiPoint's names count at filter too, where its duplicates would be an error
    filters = plugin_set("", "*")
    expanded = expand(plugins(filter=filters, **sets), SMALL)
    assert expanded[ExtensionPoint.SCORE] == want


def test_points_without_scores_have_no_weights() -> None:
    expanded = expand(plugins(multi_point=plugin_set("A=2"), filter=plugin_set("B=5")), SMALL)
    assert expanded[ExtensionPoint.FILTER] == [("A", 0), ("B", 0)]


def test_the_default_profile_runs_everything_in_its_order() -> None:
    weights = {entry.name: entry.weight for entry in DEFAULT_PLUGINS.multi_point.enabled}
    weighed = (ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE)
    assert expand(DEFAULT_PLUGINS, IMPLEMENTS) == {
        point: [(name, (weights[name] or 1) if point in weighed else 0) for name in names]
        for point, names in IMPLEMENTS.items()
    }


@pytest.mark.parametrize(
    ("custom", "problems"),
    [
        pytest.param(
            plugins(queue_sort=plugin_set()),
            ["plugins.queueSort: Invalid value: []: exactly one queue sort plugin is needed"],
            id="nothing sorts",
        ),
        pytest.param(
            plugins(multi_point=plugin_set("Other")),
            [
                'plugins.queueSort: Invalid value: ["Other","Sort"]: '
                "exactly one queue sort plugin is needed"
            ],
            id="two sort",
        ),
        pytest.param(
            plugins(bind=plugin_set()),
            ["plugins.bind: Invalid value: []: at least one bind plugin is needed"],
            id="nothing binds",
        ),
        pytest.param(
            plugins(placement_generate=plugin_set("P Q")),
            ['plugins.placementGenerate: Invalid value: ["P","Q"]: only one plugin can be enabled'],
            id="two generate placements",
        ),
        pytest.param(
            plugins(multi_point=plugin_set("X"), pre_filter=plugin_set("Y")),
            [
                'plugins.preFilter.enabled: Not found: "Y"',
                'plugins.multiPoint.enabled: Not found: "X"',
            ],
            id="unknown names",
        ),
        pytest.param(
            plugins(permit=plugin_set("A")),
            ['plugins.permit.enabled: Invalid value: "A": the plugin does not implement permit'],
            id="enabled where it does nothing",
        ),
        pytest.param(
            plugins(filter=plugin_set("A B A")),
            ['plugins.filter.enabled: Duplicate value: "A"'],
            id="twice at a point",
        ),
        pytest.param(
            plugins(multi_point=plugin_set("A B A")),
            ['plugins.multiPoint.enabled: Duplicate value: "A"'],
            id="twice at multiPoint, said once",
        ),
    ],
)
def test_plugins_that_do_not_fit_together(custom: Plugins, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        expand(custom, SMALL)
    assert list(error.value.problems) == problems


def profile(name: str, args: dict[str, object], sort: str) -> KubeSchedulerProfile:
    return KubeSchedulerProfile(
        scheduler_name=name,
        plugins=plugins(queue_sort=plugin_set(), multi_point=plugin_set(sort)),
        plugin_config=(PluginConfig(name=sort, args=args),),
    )


def test_profiles_are_found_by_their_names() -> None:
    expanded = expand_profiles([profile("a", {}, "Sort"), profile("b", {}, "Sort")], SMALL)
    assert list(expanded) == ["a", "b"]


@pytest.mark.parametrize(
    ("second", "name"),
    [
        pytest.param(profile("b", {}, "Other"), "Other", id="another plugin"),
        pytest.param(profile("b", {"x": 1}, "Sort"), "Sort", id="other args"),
    ],
)
def test_profiles_must_sort_the_queue_alike(second: KubeSchedulerProfile, name: str) -> None:
    with pytest.raises(ConfigError) as error:
        expand_profiles([profile("a", {}, "Sort"), second], SMALL, source="a.yaml")
    assert error.value.source == "a.yaml"
    problem = f'Invalid value: "{name}": must be the same for all profiles'
    assert error.value.problems == (f"profiles[1].plugins.queueSort: {problem}",)


def test_problems_of_all_profiles_are_told_together() -> None:
    broken = KubeSchedulerProfile(scheduler_name="c", plugins=plugins(bind=plugin_set()))
    with pytest.raises(ConfigError) as error:
        expand_profiles([broken, profile("a", {}, "Sort"), broken], SMALL)
    assert [problem.split(":")[0] for problem in error.value.problems] == [
        "profiles[0].plugins.bind",
        "profiles[2].plugins.bind",
    ]


names = st.lists(st.sampled_from("ABCD"), unique=True)


@given(custom=names, disabled=names, default=names)
def test_every_plugin_that_is_enabled_once_runs_once(
    custom: list[str], disabled: list[str], default: list[str]
) -> None:
    merged = merge_profile(
        Plugins(score=plugin_set(" ".join(custom), " ".join(disabled))),
        Plugins(multi_point=plugin_set(" ".join(default))),
    )
    sets = {"score": merged.score, "multi_point": merged.multi_point}
    ran = [name for name, _ in expand(plugins(**sets), SMALL)[ExtensionPoint.SCORE]]
    assert sorted(ran) == sorted({*custom, *default} - ({*disabled} - {*custom}))
