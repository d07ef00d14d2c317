"""ImageLocality: prefer nodes that already have the pod's images."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    MAX_NODE_SCORE,
    Input,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import everywhere

_MIB: Final = 1024**2
MIN_THRESHOLD: Final = 23 * _MIB
"""Images of so many bytes together are not worth a preference."""
MAX_CONTAINER_THRESHOLD: Final = 1000 * _MIB
"""So many bytes per container are worth the full score."""


class ImageLocality(ScorePlugin):
    """Scores nodes by the size of the pod's images they have (spec §5.10).

    Each image counts ``size * nodes having it / all nodes``, so that a large image on one node does
    not draw all pods there. With *low* = 23 MiB and *high* = 1000 MiB per container the score is
    ``100 * (clamp(sum, low, high) - low) / (high - low)``.
    """

    NAME = "ImageLocality"
    INPUTS = Input.CONTAINERS

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return EMPTY_FRAGMENT

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        names = pod.template.memo("ImageLocality", lambda: tuple(image_names(pod.pod)))
        containers = len(pod.pod.spec.init_containers) + len(pod.pod.spec.containers)
        return nodes.kept(("images", names, containers), lambda: _worth(nodes, names, containers))


def _worth(nodes: NodeTable, names: Sequence[str], containers: int) -> Scores:
    sizes = np.zeros(nodes.size, np.int64)
    for name in names:
        nodes.images.add_scaled_sizes(name, len(nodes), onto=sizes)
    if not containers or not sizes.any():
        return everywhere(0, nodes.size)
    high = MAX_CONTAINER_THRESHOLD * containers
    worth = sizes.clip(MIN_THRESHOLD, high) - MIN_THRESHOLD
    return worth * MAX_NODE_SCORE // (high - MIN_THRESHOLD)


def image_names(pod: Pod) -> Iterator[str]:
    """Yield the images of containers and image volumes as nodes report them, with a tag."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield _with_tag(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield _with_tag(volume.image.reference)


def _with_tag(image: str) -> str:
    """Append ``:latest`` unless a tag or digest follows the last slash; a port comes before it."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
