"""What a URL and a method mean to authorization."""

import pytest

from berth.cluster.access.attributes import Attributes, attributes_of

PODS = "/api/v1/namespaces/web/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/web/resourceclaims"


@pytest.mark.parametrize(
    ("method", "path", "query", "want"),
    [
        pytest.param("GET", "/api/v1/pods", {}, ("list", "", "pods"), id="all pods"),
        pytest.param("GET", "/api/v1/pods", {"watch": "true"}, ("watch", "", "pods"), id="a watch"),
        pytest.param("GET", "/api/v1/pods", {"watch": "0"}, ("list", "", "pods"), id="no watch"),
        pytest.param("GET", PODS, {}, ("list", "", "pods", "", "web"), id="pods of a namespace"),
        pytest.param("POST", PODS, {}, ("create", "", "pods", "", "web"), id="a new pod"),
        pytest.param(
            "DELETE", PODS, {}, ("deletecollection", "", "pods", "", "web"), id="all at once"
        ),
        pytest.param("GET", f"{PODS}/p", {}, ("get", "", "pods", "", "web", "p"), id="one pod"),
        pytest.param(
            "GET",
            f"{PODS}/p",
            {"watch": "1"},
            ("get", "", "pods", "", "web", "p"),
            id="with a name it is a get, whatever the query says",
        ),
        pytest.param(
            "PUT", f"{PODS}/p", {}, ("update", "", "pods", "", "web", "p"), id="an update"
        ),
        pytest.param(
            "POST",
            f"{PODS}/p/binding",
            {},
            ("create", "", "pods", "binding", "web", "p"),
            id="a subresource",
        ),
        pytest.param(
            "PATCH",
            f"{CLAIMS}/c/status",
            {},
            ("patch", "resource.k8s.io", "resourceclaims", "status", "web", "c"),
            id="a subresource in a group",
        ),
        pytest.param(
            "GET",
            "/api/v1/namespaces/web",
            {},
            ("get", "", "namespaces", "", "web", "web"),
            id="a namespace is in itself",
        ),
        pytest.param(
            "PUT",
            "/api/v1/namespaces/web/finalize",
            {},
            ("update", "", "namespaces", "finalize", "web", "web"),
            id="finalize is no resource in a namespace",
        ),
        pytest.param(
            "GET", "/api/v1/namespaces", {}, ("list", "", "namespaces"), id="all namespaces"
        ),
        pytest.param(
            "GET",
            "/api/v1/pods",
            {"fieldSelector": "spec.nodeName=n,metadata.name=p"},
            ("list", "", "pods", "", "", "p"),
            id="a field selector says the name",
        ),
    ],
)
def test_resources(method: str, path: str, query: dict[str, str], want: tuple[str, ...]) -> None:
    assert attributes_of(method, path, query) == Attributes(*want)._replace(path=path)


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/metrics"]
)
def test_paths_that_are_no_resources(path: str) -> None:
    assert attributes_of("GET", path, {}) == Attributes("get", path=path)
