"""The reader of expressions that the check of dashboard and alerts relies on."""

import pytest

from tests.packaging.promql import PromQLError, Used, used


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("m > 0", Used({"m": set()}), id="a bare metric"),
        pytest.param(
            'rate(m_total{job="$job", name!~"a,b\\"}"}[$__rate_interval])',
            Used({"m_total": {"job", "name"}}),
            id="labels; strings are not read",
        ),
        pytest.param(
            "sum by (le) (rate(a_bucket[5m])) / sum(b{x='y'})".replace("'", '"'),
            Used({"a_bucket": set(), "b": {"x"}}, {"le"}),
            id="grouping",
        ),
        pytest.param(
            "a unless on (job, instance) b == 0 and on (job) c",
            Used({"a": set(), "b": set(), "c": set()}, {"job", "instance"}),
            id="matching",
        ),
        pytest.param(
            "a * on (x) group_left (y) b", Used({"a": set(), "b": set()}, {"x", "y"}), id="joining"
        ),
    ],
)
def test_what_is_used(expression: str, want: Used) -> None:
    assert used(expression) == want


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("1 > bool 0", id="no metric"),
        pytest.param("rte(m[5m])", id="an unknown function"),
        pytest.param('{__name__="m"}', id="a metric that is not named as such"),
        pytest.param('m{job="x"', id="an open bracket"),
        pytest.param("m[5 minutes]", id="a range that is none"),
        pytest.param("sum by le (m)", id="labels without brackets"),
    ],
)
def test_what_is_refused(expression: str) -> None:
    with pytest.raises(PromQLError):
        used(expression)
