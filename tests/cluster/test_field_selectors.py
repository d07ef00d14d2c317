"""Field selectors, as apimachinery reads them."""

import pytest

from berth.cluster.http.field_selectors import FieldRequirement, parse_field_selector
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

NAME = "metadata.name"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param(",,", (), id="only commas"),
        pytest.param(f"{NAME}=a", ((True, "a"),), id="="),
        pytest.param(f"{NAME}==a", ((True, "a"),), id="=="),
        pytest.param(f"{NAME}!=a,{NAME}=b", ((False, "a"), (True, "b")), id="!= and another"),
        pytest.param(f"{NAME}=a,{NAME}=a", ((True, "a"),), id="the same twice"),
        pytest.param(f"{NAME}=", ((True, ""),), id="no value"),
        pytest.param(f"{NAME}=" + r"\\\,\=", ((True, r"\,="),), id="escaped"),
        pytest.param(f"{NAME}=a!b", ((True, "a!b"),), id="a mark that is none in values"),
    ],
)
def test_parse(text: str, want: tuple[tuple[bool, str], ...]) -> None:
    found = parse_field_selector(text)
    assert found.requirements == tuple(FieldRequirement(NAME, *each) for each in want)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(NAME, "can't understand 'metadata.name'", id="no operator"),
        pytest.param(f"{NAME}=a\\", "invalid escape sequence: \\", id="escaped end"),
        pytest.param(f"{NAME}=a\\x", "invalid escape sequence: \\x", id="escaped letter"),
        pytest.param(f"{NAME}=a=b", "unescaped character in value: =", id="a second ="),
        pytest.param("x" * 70_000, "longer than 65536 characters", id="too long"),
    ],
)
def test_what_is_no_selector(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="selector") as refusal:
        parse_field_selector(text)
    assert str(refusal.value).endswith(complaint)


@pytest.mark.parametrize(
    ("key", "obj", "want"),
    [
        (
            ("certificates.k8s.io", "v1", "certificatesigningrequests"),
            {"spec": {"signerName": "example.com/a"}},
            {"spec.signerName": "example.com/a"},
        ),
        (("", "v1", "nodes"), {"spec": {}}, {"spec.unschedulable": "false"}),
        (
            ("resource.k8s.io", "v1", "resourceslices"),
            {"spec": {"driver": "d"}},
            {"spec.driver": "d", "spec.nodeName": "", "spec.pool.name": ""},
        ),
    ],
)
def test_what_may_be_selected_beyond_names(
    key: tuple[str, str, str], obj: Object, want: dict[str, str]
) -> None:
    fields = find(*key).selectable_fields
    assert {name: read(obj) for name, read in fields.items()} == want
