"""ImageLocality: scores by image size and spread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.pod import Container, ImageVolume, Pod, Volume
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.handle import Handle
from berth_plugins.image_locality import ImageLocality, image_names
from tests.builders import container, node, pod
from tests.plugins.evaluating import raw_scores, table

MIB = 1024**2


def rule(sizes: list[int], having: list[int], total_nodes: int, *, containers: int) -> int:
    """Spec §5.10 for one node that has all of the images."""
    low, high = 23 * MIB, 1000 * MIB * containers
    found = sum(int(size * (n / total_nodes)) for size, n in zip(sizes, having, strict=True))
    return 100 * (min(max(found, low), high) - low) // (high - low)


@pytest.mark.parametrize(
    ("image", "want"),
    [
        pytest.param("app", "app:latest", id="no tag"),
        pytest.param("app:1", "app:1", id="a tag"),
        pytest.param("r.io:5000/app", "r.io:5000/app:latest", id="a port is no tag"),
        pytest.param("r.io:5000/app:1", "r.io:5000/app:1", id="a port and a tag"),
        pytest.param("app@sha256:0a", "app@sha256:0a", id="a digest"),
    ],
)
def test_names_get_a_tag(image: str, want: str) -> None:
    assert list(image_names(pod(image=image))) == [want]


def test_images_of_init_containers_and_volumes_count() -> None:
    a_pod = pod(
        image="app",
        init_containers=[container("init", image="tool")],
        volumes=[Volume(name="v", image=ImageVolume(reference="data:2")), Volume(name="w")],
    )
    assert list(image_names(a_pod)) == ["tool:latest", "app:latest", "data:2"]


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(image="other"), {"a": 0, "b": 0}, id="nobody has it"),
        pytest.param(pod(image="small"), {"a": 0, "b": 0}, id="too small to matter"),
        pytest.param(pod(image="big:1"), {"a": 48, "b": 0}, id="half of the nodes: half the size"),
        pytest.param(pod(image="huge"), {"a": 100, "b": 100}, id="at most 100"),
    ],
)
def test_score(a_pod: Pod, want: dict[str, int]) -> None:
    shared = {"small:latest": 30 * MIB, "huge:latest": 5000 * MIB}
    nodes = table(
        node("a", images={**shared, "big:1": 1000 * MIB}),
        node("b", images={"huge:latest": 5000 * MIB}),
    )
    assert raw_scores(ImageLocality(), a_pod, nodes) == want


sizes = st.integers(0, 3000 * MIB)


@given(st.lists(sizes, min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 3))
def test_score_follows_the_rule(images: list[int], having: int, lacking: int) -> None:
    known = {f"i{i}:t": size for i, size in enumerate(images)}
    nodes = table(
        *[node(f"has-{i}", images=known) for i in range(having)],
        *[node(f"lacks-{i}") for i in range(lacking)],
    )
    containers: list[Container] = [container(name, image=name) for name in known]
    want = rule(images, [having] * len(images), having + lacking, containers=len(images))
    got = raw_scores(ImageLocality(), pod(containers=containers), nodes)
    assert got == {name: want if name.startswith("has") else 0 for name in nodes.row_of}


@pytest.mark.parametrize(
    ("has", "before", "now"),
    [
        pytest.param(["app:1", "data:2"], 100, 100, id="both images"),
        pytest.param(["data:2"], 100, 49, id="only that of the volume"),
    ],
)
def test_image_volumes_raise_the_bound(has: list[str], before: int, now: int) -> None:
    """1.37 spec N3.3."""
    a_pod = pod(image="app:1", volumes=[Volume(image=ImageVolume(reference="data:2"))])
    nodes = table(node("n", images=dict.fromkeys(has, 1000 * MIB)))
    for release, want in (("1.36", before), ("1.37", now)):
        handle = Handle(nodes, features=Features.of(release=release))
        assert raw_scores(ImageLocality(None, handle), a_pod, nodes) == {"n": want}
