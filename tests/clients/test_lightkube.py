"""lightkube, whose models and server-side apply are generated from the OpenAPI of Kubernetes."""

from pathlib import Path

import pytest
from lightkube import ApiError, Client, KubeConfig, codecs
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod

from tests.clients import FOREIGN_AND_SLOW
from tests.clients.test_kubernetes import deployment

pytestmark = FOREIGN_AND_SLOW


@pytest.fixture
def lightkube(kubeconfig: Path, namespace: str) -> Client:
    return Client(
        KubeConfig.from_file(str(kubeconfig)), namespace=namespace, field_manager="lightkube"
    )


def test_objects_are_created_listed_and_waited_for(lightkube: Client) -> None:
    lightkube.create(codecs.from_dict(deployment(2)))
    lightkube.wait(Deployment, "web", for_conditions=["Available"])
    phases = [pod.status.phase for pod in lightkube.list(Pod, labels={"app": "web"})]
    assert phases == ["Running", "Running"]
    lightkube.delete(Deployment, "web")


def test_an_object_is_applied_and_its_conflict_seen(lightkube: Client) -> None:
    first = lightkube.apply(ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "1"}))
    assert first.metadata.managedFields[0].manager == "lightkube"
    with pytest.raises(ApiError) as refused:
        lightkube.apply(
            ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "2"}), field_manager="other"
        )
    assert refused.value.status.code == 409
    lightkube.apply(
        ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "2"}), field_manager="other", force=True
    )
    assert lightkube.get(ConfigMap, "c").data == {"a": "2"}


def test_a_watch_ends_where_it_is_told(lightkube: Client) -> None:
    lightkube.create(ConfigMap(metadata=ObjectMeta(name="seen"), data={}))
    for change, found in lightkube.watch(ConfigMap, server_timeout=20):
        if found.metadata.name == "seen":
            assert change == "ADDED"
            break
