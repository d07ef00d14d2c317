"""KeyIndex: nothing that a key finds is overlooked, no selector that matches labels is."""

from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.selectors import NOTHING, Operator, Requirement, Selector
from berth.scheduler.framework.key_index import ANYWHERE, KeyIndex, label_choices

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
    index: KeyIndex[int] = KeyIndex()
    for i, selector in enumerate(filed):
        index.add(i, label_choices(selector))
    gone = data.draw(st.sets(st.sampled_from(range(len(filed))))) if filed else set()
    for i in gone:
        index.remove(i)

    candidates = list(index.candidates(labels.items()))

    matching = {i for i, selector in enumerate(filed) if selector.matches(labels)}
    assert len(candidates) == len(set(candidates))
    assert matching - gone <= set(candidates)
    assert not gone & set(candidates)


def test_the_least_crowded_label_is_chosen() -> None:
    index: KeyIndex[str] = KeyIndex()
    common = Requirement("a-part-of", Operator.IN, ("shop",))
    for name in ("one", "two"):
        own = Requirement("name", Operator.IN, (name,))
        index.add(name, label_choices(Selector((common, own))))

    assert list(index.candidates([("name", "two")])) == ["two"]
    assert list(index.candidates([("a-part-of", "shop")])) == ["one"]


def test_all_keys_of_the_choice_find_what_is_filed() -> None:
    index: KeyIndex[str] = KeyIndex()
    index.add("both", [("a", "b")])
    index.add("everywhere", ANYWHERE)

    assert list(index.candidates("b")) == ["everywhere", "both"]
    assert list(index.candidates("c")) == ["everywhere"]
    assert list(index.candidates("ab")) == ["everywhere", "both", "both"]
    index.remove("both")
    assert list(index.candidates("ab")) == ["everywhere"]
