"""How label keys, label values and resource names are spelled."""

import pytest

from berth.kube.objects.names import is_label_value, is_qualified_name
from berth.kube.objects.resources import is_extended, is_scalar


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a", True),
        ("A-b_c.9", True),
        ("example.com/a", True),
        ("a" * 63, True),
        ("a" * 64, False),
        (f"{'a' * 253}/a", True),
        (f"{'a' * 254}/a", False),
        ("", False),
        ("-a", False),
        ("a-", False),
        ("a b", False),
        ("/a", False),
        ("a/", False),
        ("a/b/c", False),
        ("Example.com/a", False),
        ("a..b/c", False),
        ("a\n", False),
        ("\u00e9", False),
    ],
)
def test_qualified_name(text: str, want: bool) -> None:
    assert is_qualified_name(text) is want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", True),
        ("A-b_c.9", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("-5", False),
        ("a/b", False),
    ],
)
def test_label_value(text: str, want: bool) -> None:
    assert is_label_value(text) is want


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        pytest.param("example.com/gpu", True, True, id="somebody's own domain"),
        pytest.param("cpu", False, False, id="native"),
        pytest.param("gpu", False, False, id="no domain"),
        pytest.param("hugepages-2Mi", False, True, id="hugepages"),
        pytest.param("attachable-volumes-csi-x", False, True, id="attachable volumes"),
        pytest.param("kubernetes.io/batch", False, True, id="the native domain"),
        pytest.param("sub.kubernetes.io/batch", False, True, id="below the native domain"),
        pytest.param("requests.example.com/gpu", False, False, id="a quota's name"),
        pytest.param("Example.com/gpu", False, False, id="not a domain"),
        pytest.param(f"{'a' * 245}/gpu", False, False, id="too long with the quota's prefix"),
    ],
)
def test_resource_names(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended(name), is_scalar(name)) == (extended, scalar)
