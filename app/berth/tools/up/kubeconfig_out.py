"""The kubeconfig that an embedded cluster writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.kube.kubeconfig import merged, path_beside, usual_path, written
from berth.runtime.addresses import KUBECONFIG
from berth.runtime.terminal import shown_path


@dataclass(frozen=True, slots=True)
class KubeconfigOut:
    """Which kubeconfigs are written."""

    path: Path | None = None
    """None: KUBECONFIG, or one beside it while another process has its cluster there."""
    merge: bool = False
    """Also add it to the kubeconfig that kubectl uses, while the cluster runs."""

    @contextmanager
    def written(self, cluster: EmbeddedCluster, *, scheduler: str = "") -> Iterator[str]:
        """Write them for the block; yield the flags that kubectl and berth find them with.

        Afterwards nothing of them is left, unless somebody has changed the file meanwhile.

        *scheduler* is the URL of the scheduler of *cluster*. Raises OSError and KubeconfigError.
        """
        access = cluster.access(scheduler=scheduler)
        path = (self.path or path_beside(KUBECONFIG)).absolute()
        with written(path, access):
            if self.merge:
                with merged(usual_path(), access) as context:
                    yield f"--context {context}"
            else:
                yield f"--kubeconfig {shown_path(path)}"
