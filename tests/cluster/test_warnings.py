"""Warning headers: quoted, free of control characters, bounded."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.access.users import ADMIN
from berth.cluster.kinds.write_warnings import WARNINGS
from berth.cluster.resources import Object
from berth.cluster.warnings import MOST_CHARACTERS, MOST_WHEN_CUT, headers, quoted
from tests.cluster.access.secured import Secured
from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"
QUOTED_STRING = re.compile(r'299 - "(?:[^"\\\x00-\x1f\x7f]|\\["\\])*"')


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("spec.foo", '"spec.foo"', id="plain"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes"),
        pytest.param("a\nb\rc\x1b[2J\x7f", r'"a\nb\rc\x1b[2J\x7f"', id="control characters"),
        pytest.param("ü\u2028\U000e0001", '"ü\\u2028\\U000e0001"', id="beyond ASCII"),
    ],
)
def test_quoted_as_go_does(text: str, want: str) -> None:
    assert quoted(text) == want


@given(st.lists(st.text(max_size=300), max_size=60))
def test_any_text_makes_a_header(texts: list[str]) -> None:
    found = [value.decode() for _, value in headers(texts)]
    assert all(QUOTED_STRING.fullmatch(each) for each in found)
    assert sum(map(len, found)) <= 2 * (MOST_CHARACTERS + MOST_WHEN_CUT) + 8 * len(found)


async def test_a_field_name_of_several_lines() -> None:
    body = pod("p") | {'x\r\nSet-Cookie: a="b"\x1b[31m': 1}
    response = await Serving().http.post(PODS, json=body)
    assert response.status_code == 201
    assert response.headers["warning"] == (
        r'299 - "unknown field \"x\\r\\nSet-Cookie: a=\\\"b\\\"\\x1b[31m\""'
    )


async def test_many_unknown_fields() -> None:
    body = pod("p") | {f"{'x' * 1000}{number}": 1 for number in range(500)}
    response = await Serving().http.post(PODS, json=body)
    assert response.status_code == 201
    cut = '299 - "unknown field \\"' + "x" * 241 + '"'
    assert response.headers.get_list("warning") == [cut] * (MOST_CHARACTERS // MOST_WHEN_CUT)


PORT = {"containerPort": 80, "protocol": "TCP", "name": "http"}


@pytest.mark.parametrize(
    ("path", "obj", "old", "want"),
    [
        pytest.param("v1/pods", {"spec": {}}, None, [], id="nothing is odd"),
        pytest.param(
            "v1/pods",
            {"spec": {"containers": [{"ports": [PORT]}, {"ports": [PORT]}]}},
            None,
            [
                "spec.containers[1].ports[0]: duplicate port definition with "
                "spec.containers[0].ports[0]",
                'spec.containers[1].ports[0]: duplicate port name "http" with '
                "spec.containers[0].ports[0], services and probes that select ports by name will "
                "use spec.containers[0].ports[0]",
            ],
            id="the same port twice",
        ),
        pytest.param(
            "v1/pods",
            {"spec": {"containers": [{"ports": [PORT | {"hostPort": 1}, PORT | {"name": ""}]}]}},
            None,
            [
                "spec.containers[0].ports[1]: overlapping port definition with "
                "spec.containers[0].ports[0]"
            ],
            id="a port of the host, and one of the pod",
        ),
        pytest.param(
            "batch/v1/cronjobs",
            {
                "spec": {
                    "jobTemplate": {
                        "spec": {
                            "template": {"spec": {"nodeSelector": {"beta.kubernetes.io/os": ""}}}
                        }
                    }
                }
            },
            None,
            [
                "spec.jobTemplate.spec.template.spec.nodeSelector[beta.kubernetes.io/os]: "
                'deprecated since v1.14; use "kubernetes.io/os" instead'
            ],
            id="a label of old, in a template",
        ),
        pytest.param(
            "v1/pods",
            {
                "spec": {
                    "containers": [
                        {
                            "env": [
                                {"name": "A", "value": "1"},
                                {"name": "A", "value": "2$(A)"},
                                {"name": "A", "value": "3"},
                            ],
                            "resources": {"limits": {"memory": "100m", "cpu": "100m"}},
                        }
                    ]
                }
            },
            None,
            [
                'spec.containers[0].resources.limits[memory]: fractional byte value "100m" is '
                "invalid, must be an integer",
                'spec.containers[0].env[2]: hides previous definition of "A", which may be dropped '
                "when using apply",
            ],
            id="a part of a byte, and a variable that hides another",
        ),
        pytest.param(
            "v1/pods",
            {"spec": {"terminationGracePeriodSeconds": -1}},
            {"spec": {}},
            [],
            id="updates of pods are not looked at",
        ),
        pytest.param(
            "apps/v1/daemonsets",
            {
                "metadata": {"generation": 2},
                "spec": {"template": {"spec": {"hostAliases": [{}, {}]}}},
            },
            {"metadata": {"generation": 1}},
            ['spec.template.spec.hostAliases[1].ip: duplicate ip ""'],
            id="updates of templates are",
        ),
        pytest.param(
            "apps/v1/daemonsets",
            {
                "metadata": {"generation": 2},
                "spec": {"template": {"spec": {"hostAliases": [{}, {}]}}},
            },
            {"metadata": {"generation": 2}},
            [],
            id="unless they change nothing that is wanted",
        ),
        pytest.param(
            "apps/v1/deployments",
            {"metadata": {"name": "a.b"}, "spec": {}},
            None,
            [
                "metadata.name: this is used in Pod names and hostnames, which can result in "
                "surprising behavior; a DNS label is recommended: [must not contain dots]"
            ],
            id="a name that is no label",
        ),
        pytest.param(
            "v1/services",
            {"spec": {"clusterIP": "None", "externalIPs": ["1.2.3.4"], "sessionAffinity": "None"}},
            None,
            ["spec.externalIPs is ignored for headless services"],
            id="addresses of a service that has none",
        ),
    ],
)
def test_what_is_odd(path: str, obj: Object, old: Object | None, want: list[str]) -> None:
    new = {"metadata": {"name": "a"}, **obj}
    before = None if old is None else {"metadata": {}, **old}
    assert list(WARNINGS[path](new, before)) == want


async def test_an_object_that_is_odd_is_made_all_the_same() -> None:
    secured = Secured()
    headers = {"authorization": f"Bearer {secured.tokens.issue(ADMIN)}"}
    node = {"metadata": {"name": "n"}, "spec": {"externalID": "x"}}
    response = await secured.http.post("/api/v1/nodes", json=node, headers=headers)
    assert response.status_code == 201
    assert response.headers["warning"] == (
        '299 - "spec.externalID: this field is deprecated, and is unused by Kubernetes"'
    )
