"""Notes as kube-scheduler mangles them: what fmt.Sprintf does with verbs and no arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.client.go_format import formatted


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("0/2 nodes are available", "0/2 nodes are available", id="no verbs"),
        pytest.param("", "", id="nothing"),
        pytest.param("100%% full", "100% full", id="an escaped percent sign"),
        pytest.param("disk is 95% full", "disk is 95%!f(MISSING)ull", id="a space is a flag"),
        pytest.param("95%, 96%.", "95%!,(MISSING) 96%!(NOVERB)", id="punctuation is a verb"),
        pytest.param("95%", "95%!(NOVERB)", id="at the end"),
        pytest.param("%!x", "%!!(MISSING)x", id="an exclamation mark"),
        pytest.param("a%2Fb", "a%!F(MISSING)b", id="of a URL: digits are a width"),
        pytest.param("%-08.3d|", "%!d(MISSING)|", id="flags, width and precision"),
        pytest.param("%5%", "%", id="a percent sign takes no notice of a width"),
        pytest.param("%é", "%!é(MISSING)", id="a verb of two bytes"),
        pytest.param("%*d", "%!(BADWIDTH)%!d(MISSING)", id="the width would be an argument"),
        pytest.param("%.*d", "%!(BADPREC)%!d(MISSING)", id="the precision would be an argument"),
        pytest.param("%[1]d", "%!d(BADINDEX)", id="an argument is named"),
        pytest.param("%[x]d", "%!d(BADINDEX)", id="by no number"),
        pytest.param("%[1", "%!(NOVERB)", id="the bracket stays open"),
        pytest.param("%[]", "%!](BADINDEX)", id="empty brackets at the end"),
        pytest.param("%[]d", "%!d(BADINDEX)", id="empty brackets"),
        pytest.param("%[1][2]d", "%![(BADINDEX)2]d", id="an argument is named twice"),
        pytest.param("%[x][2]d", "%!d(BADINDEX)", id="and first by no number"),
        pytest.param("%[1]*[2]d", "%!(BADWIDTH)%!d(BADINDEX)", id="first for the width"),
        pytest.param("%[1]%", "%", id="a percent sign takes no notice of an argument either"),
        pytest.param("%1000001d", "%!d(MISSING)", id="a large width"),
        pytest.param("%10000010d and so on", "%!(NOVERB)", id="a width that is too large"),
        pytest.param("%d %s", "%!d(MISSING) %!s(MISSING)", id="several"),
    ],
)
def test_formatted(text: str, want: str) -> None:
    assert formatted(text) == want


@given(st.text(alphabet="ab% []*.19#"))
def test_what_has_no_percent_sign_is_left_alone(text: str) -> None:
    plain = text.replace("%", "")
    assert formatted(plain) == plain
    assert formatted(text.replace("%", "%%")) == text
