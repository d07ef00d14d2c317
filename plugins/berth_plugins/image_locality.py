"""ImageLocality: prefer nodes that already have the pod's images."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from berth.kube.objects.pod import Pod
from berth.runtime.release import Behaviour
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
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
"""So many bytes per container or image volume are worth the full score."""


COUNTS_IMAGE_VOLUMES: Final = Behaviour(
    "1.37",
    "N3.3",
    "ImageLocality gives the full score for 1000 MiB per container and image volume, not only per"
    " container.",
)


class ImageLocality(ScorePlugin):
    """Scores nodes by the size of the pod's images they have (spec §5.10, 1.37 spec N3.3).

    Each image counts ``size * nodes having it / all nodes``, so that a large image on one node does
    not draw all pods there. With *low* = 23 MiB and *high* = 1000 MiB per container and image
    volume the score is ``100 * (clamp(sum, low, high) - low) / (high - low)``.
    """

    NAME = "ImageLocality"
    INPUTS = Input.CONTAINERS

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._counts_volumes = handle is None or COUNTS_IMAGE_VOLUMES in handle.features

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return EMPTY_FRAGMENT

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        names = pod.template.memo("ImageLocality", lambda: tuple(image_names(pod.pod)))
        spec = pod.pod.spec
        count = len(spec.init_containers) + len(spec.containers)
        if self._counts_volumes:
            count += sum(volume.image is not None for volume in spec.volumes)
        return nodes.kept(("images", names, count), lambda: _worth(nodes, names, count))


def _worth(nodes: NodeTable, names: Sequence[str], count: int) -> Scores:
    sizes = np.zeros(nodes.size, np.int64)
    for name in names:
        nodes.images.add_scaled_sizes(name, len(nodes), onto=sizes)
    if not count or not sizes.any():
        return everywhere(0, nodes.size)
    high = MAX_CONTAINER_THRESHOLD * count
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
