"""DefaultIngressClass: the class of an ingress that names none."""

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.writes.admission.default_ingress_class import DEFAULT_CLASS, OLD_CLASS
from tests.cluster.writes.booted import Booted

INGRESSES = find("networking.k8s.io", "v1", "ingresses")
INGRESS_CLASSES = find("networking.k8s.io", "v1", "ingressclasses")


def ingress(annotations: Object | None = None, **spec: object) -> Object:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    metadata = {"name": "i", "namespace": "default", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"defaultBackend": backend, **spec}}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(ingress(), "default", id="the default class"),
        pytest.param(ingress(ingressClassName="other"), "other", id="the one it names"),
        pytest.param(ingress({OLD_CLASS: "nginx"}), None, id="or names in the old way"),
    ],
)
def test_the_class_of_an_ingress(body: Object, want: str | None) -> None:
    cluster = Booted()
    for name in ("default", "other"):
        annotations = {DEFAULT_CLASS: str(name == "default").lower()}
        metadata = {"name": name, "annotations": annotations}
        cluster.create(
            INGRESS_CLASSES, {"metadata": metadata, "spec": {"controller": "example.com/c"}}
        )
    assert cluster.create(INGRESSES, body)["spec"].get("ingressClassName") == want


def test_of_several_defaults_the_newest() -> None:
    cluster = Booted()
    for name in ("b", "c", "a"):
        metadata = {"name": name, "annotations": {DEFAULT_CLASS: "true"}}
        cluster.create(
            INGRESS_CLASSES, {"metadata": metadata, "spec": {"controller": "example.com/c"}}
        )
        if name == "b":
            cluster.clock.advance(10)
    assert cluster.create(INGRESSES, ingress())["spec"]["ingressClassName"] == "a"


def test_without_any_it_has_none() -> None:
    assert "ingressClassName" not in Booted().create(INGRESSES, ingress())["spec"]
