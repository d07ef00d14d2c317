"""SelectorIndex: no selector that matches is overlooked."""

from hypothesis import given
from hypothesis import strategies as st

from berth.framework.selector_index import SelectorIndex
from berth.objects.selectors import NOTHING, Operator, Requirement, Selector

keys, values = st.sampled_from("kl"), st.sampled_from("xyz")
requirements = st.one_of(
    st.builds(
        Requirement,
        keys,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(values, min_size=1, unique=True).map(tuple),
    ),
    st.builds(Requirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
)
selectors = st.lists(requirements, max_size=3).map(lambda found: Selector(tuple(found)))


@given(
    st.lists(selectors | st.just(NOTHING), max_size=8),
    st.dictionaries(keys, values),
    st.data(),
)
def test_all_that_match_are_candidates_once(
    filed: list[Selector], labels: dict[str, str], data: st.DataObject
) -> None:
    index: SelectorIndex[int] = SelectorIndex()
    for i, selector in enumerate(filed):
        index.add(i, selector)
    gone = data.draw(st.sets(st.sampled_from(range(len(filed))))) if filed else set()
    for i in gone:
        index.remove(i)

    candidates = list(index.candidates(labels))

    matching = {i for i, selector in enumerate(filed) if selector.matches(labels)}
    assert len(candidates) == len(set(candidates))
    assert matching - gone <= set(candidates)
    assert not gone & set(candidates)


def test_the_least_crowded_label_is_chosen() -> None:
    index: SelectorIndex[str] = SelectorIndex()
    common = Requirement("a-part-of", Operator.IN, ("shop",))
    for name in ("one", "two"):
        own = Requirement("name", Operator.IN, (name,))
        index.add(name, Selector((common, own)))

    assert list(index.candidates({"name": "two"})) == ["two"]
    assert list(index.candidates({"a-part-of": "shop"})) == ["one"]
