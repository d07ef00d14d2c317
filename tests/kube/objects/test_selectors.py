"""Label selectors: matching, compiling, and the query string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.selector_text import parse_label_selector
from berth.kube.objects.selectors import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    Selector,
    compile_selector,
    parse_int64,
    selector_from_map,
)
from tests.builders import expression, selector

IN, NOT_IN = Operator.IN, Operator.NOT_IN
EXISTS, DOES_NOT_EXIST = Operator.EXISTS, Operator.DOES_NOT_EXIST
GT, LT = Operator.GT, Operator.LT


@pytest.mark.parametrize(
    ("requirement", "value", "want"),
    [
        pytest.param(Requirement("k", IN, ("a", "b")), "b", True, id="In: one of them"),
        pytest.param(Requirement("k", IN, ("a", "b")), "c", False, id="In: none of them"),
        pytest.param(Requirement("k", IN, ("",)), None, False, id="In: empty is not absent"),
        pytest.param(Requirement("k", NOT_IN, ("a",)), "a", False, id="NotIn: one of them"),
        pytest.param(Requirement("k", NOT_IN, ("a",)), "b", True, id="NotIn: none of them"),
        pytest.param(Requirement("k", NOT_IN, ("a",)), None, True, id="NotIn: absent"),
        pytest.param(Requirement("k", EXISTS), "", True, id="Exists: even if empty"),
        pytest.param(Requirement("k", EXISTS), None, False, id="Exists: absent"),
        pytest.param(Requirement("k", DOES_NOT_EXIST), None, True, id="DoesNotExist: absent"),
        pytest.param(Requirement("k", DOES_NOT_EXIST), "", False, id="DoesNotExist: empty"),
        pytest.param(Requirement("k", GT, ("5",)), "6", True, id="Gt: more"),
        pytest.param(Requirement("k", GT, ("5",)), "5", False, id="Gt: as much"),
        pytest.param(Requirement("k", GT, ("5",)), "10", True, id="Gt: numbers, not text"),
        pytest.param(Requirement("k", GT, ("5",)), "x", False, id="Gt: not a number"),
        pytest.param(Requirement("k", GT, ("x",)), "6", False, id="Gt: bound is not a number"),
        pytest.param(Requirement("k", GT, ("5",)), None, False, id="Gt: absent"),
        pytest.param(Requirement("k", GT, ()), "6", False, id="Gt: no bound"),
        pytest.param(Requirement("k", LT, ("5",)), "4", True, id="Lt: less"),
        pytest.param(Requirement("k", LT, ("5",)), "5", False, id="Lt: as much"),
        pytest.param(Requirement("k", LT, ("5",)), "9" * 19, False, id="Lt: not an int64"),
    ],
)
def test_requirement(requirement: Requirement, value: str | None, want: bool) -> None:
    assert requirement.matches(value) is want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        (str(2**63), None),
        ("", None),
        ("1_0", None),
        (" 1", None),
        ("1.0", None),
        ("\u0661", None),
        ("1" * 5000, None),
    ],
)
def test_parse_int64(text: str, want: int | None) -> None:
    assert parse_int64(text) == want


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param(None, NOTHING, id="no selector"),
        pytest.param(selector(), EVERYTHING, id="an empty selector"),
        pytest.param(
            selector(
                {"tier": "web"},
                expressions=[
                    expression("app", "In", "b", "a", "b"),
                    expression("old", "DoesNotExist"),
                    expression("app", "NotIn", "c"),
                    expression("app", "NotIn", "c"),
                ],
            ),
            Selector(
                (
                    Requirement("app", IN, ("a", "b")),
                    Requirement("app", NOT_IN, ("c",)),
                    Requirement("old", DOES_NOT_EXIST),
                    Requirement("tier", IN, ("web",)),
                )
            ),
            id="sorted, without repetition",
        ),
    ],
)
def test_compile(written: LabelSelector | None, want: Selector) -> None:
    compiled = compile_selector(written)
    assert (compiled, hash(compiled)) == (want, hash(want))


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (selector(expressions=[expression("k", "In")]), "values of 'k': In needs at least one"),
        (selector(expressions=[expression("k", "NotIn")]), "values of 'k': NotIn needs at least"),
        (
            selector(expressions=[expression("k", "Exists", "v")]),
            "values of 'k': Exists takes none",
        ),
        (selector(expressions=[expression("k", "DoesNotExist", "v")]), "takes none, got ['v']"),
        (selector(expressions=[expression("-k", "Exists")]), "key '-k': not a label key"),
        (selector({"k": "-v"}), "values of 'k': '-v' is not a label value"),
        (selector(expressions=[expression("k", "Gt", "1")]), "'Gt' is not a valid label selector"),
        (selector(expressions=[expression("k", "Like", "1")]), "'Like' is not a valid label"),
    ],
    ids=["In nothing", "NotIn nothing", "Exists", "DoesNotExist", "key", "value", "Gt", "unknown"],
)
def test_compile_refuses(written: LabelSelector, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"label|value") as refusal:
        compile_selector(written)
    assert complaint in str(refusal.value)


def test_nothing_everything_and_both() -> None:
    some = selector_from_map({"a": "1"})
    assert [one.matches({"a": "1"}) for one in (NOTHING, EVERYTHING, some)] == [False, True, True]
    assert [one.is_empty for one in (NOTHING, EVERYTHING, some)] == [False, True, False]
    assert some.and_also(EVERYTHING) == some
    assert some.and_also(NOTHING) == NOTHING.and_also(some) == NOTHING
    assert some.and_also(selector_from_map({"b": "2"})) == selector_from_map({"b": "2", "a": "1"})
    assert selector_from_map(None) == selector_from_map({}) == EVERYTHING


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", (), id="nothing said"),
        pytest.param("  ", (), id="only space"),
        pytest.param(
            "a=b,c!=d,e in (y,x),f notin (z),!g,h,i>5,j<6,k==l",
            (
                Requirement("a", IN, ("b",)),
                Requirement("c", NOT_IN, ("d",)),
                Requirement("e", IN, ("x", "y")),
                Requirement("f", NOT_IN, ("z",)),
                Requirement("g", DOES_NOT_EXIST),
                Requirement("h", EXISTS),
                Requirement("i", GT, ("5",)),
                Requirement("j", LT, ("6",)),
                Requirement("k", IN, ("l",)),
            ),
            id="all operators",
        ),
        pytest.param(
            " a = b , ! c , d in( x , y ) ",
            (
                Requirement("a", IN, ("b",)),
                Requirement("c", DOES_NOT_EXIST),
                Requirement("d", IN, ("x", "y")),
            ),
            id="space anywhere",
        ),
        pytest.param(
            "a=,b in (),c in (,x)",
            (
                Requirement("a", IN, ("",)),
                Requirement("b", IN, ("",)),
                Requirement("c", IN, ("", "x")),
            ),
            id="empty values",
        ),
        pytest.param(
            "in in (in),notin,x.io/in=notin",
            (
                Requirement("in", IN, ("in",)),
                Requirement("notin", EXISTS),
                Requirement("x.io/in", IN, ("notin",)),
            ),
            id="operators as names",
        ),
    ],
)
def test_query(text: str, want: tuple[Requirement, ...]) -> None:
    assert parse_label_selector(text) == Selector(want)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("x,!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "ain (b)",
            "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("i>x", "values of 'i': Gt needs one integer"),
        ("a/b/c=d", "key 'a/b/c': not a label key"),
    ],
)
def test_query_refuses(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^labelSelector ") as refusal:
        parse_label_selector(text)
    assert str(refusal.value) == f"labelSelector {text!r}: {complaint}"


keys = st.sampled_from("abc")
values = st.sampled_from(["", "x", "y", "z"])
maps = st.dictionaries(keys, values)
expressions = st.one_of(
    st.builds(
        lambda key, operator, wanted: expression(key, operator, *wanted),
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1),
    ),
    st.builds(expression, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.builds(
    lambda labels, conditions: selector(labels, expressions=conditions), maps, st.lists(expressions)
)


def by_the_rule(written: LabelSelector, labels: dict[str, str]) -> bool:
    answer = {
        "In": lambda e: e.key in labels and labels[e.key] in e.values,
        "NotIn": lambda e: e.key not in labels or labels[e.key] not in e.values,
        "Exists": lambda e: e.key in labels,
        "DoesNotExist": lambda e: e.key not in labels,
    }
    return all(labels.get(key) == value for key, value in written.match_labels.items()) and all(
        answer[one.operator](one) for one in written.match_expressions
    )


@given(written=selectors, other=selectors, labels=maps)
def test_matching_follows_the_rule(
    written: LabelSelector, other: LabelSelector, labels: dict[str, str]
) -> None:
    one, two = compile_selector(written), compile_selector(other)
    assert one.matches(labels) is by_the_rule(written, labels)
    assert one.and_also(two).matches(labels) is (one.matches(labels) and two.matches(labels))
    assert one.and_also(two) == two.and_also(one)


@given(written=selectors)
def test_a_selector_reads_back_from_its_query(written: LabelSelector) -> None:
    text = {
        IN: "{0.key} in ({1})",
        NOT_IN: "{0.key} notin ({1})",
        EXISTS: "{0.key}",
        DOES_NOT_EXIST: "!{0.key}",
    }
    compiled = compile_selector(written)
    query = ",".join(text[r.operator].format(r, ",".join(r.values)) for r in compiled.requirements)
    assert parse_label_selector(query) == compiled
