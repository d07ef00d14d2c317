"""PreEnqueue: who may not be tried yet (spec §3.2)."""

import logging
from collections.abc import Mapping, Sequence

from app.framework.interface import PreEnqueuePlugin
from app.framework.pod_info import QueuedPodInfo
from app.framework.status import Code, Status
from app.queue.hints import HintMap

log = logging.getLogger(__name__)


class Gates:
    """Runs the PreEnqueue plugins of a pod's profile and notes in the pod who gates it."""

    def __init__(
        self, plugins: Mapping[str, Sequence[PreEnqueuePlugin]], *, hints: HintMap
    ) -> None:
        self._plugins = plugins
        self._patterns = {
            (profile, plugin.NAME): hints.patterns_of(profile, plugin.NAME)
            for profile, of_profile in plugins.items()
            for plugin in of_profile
        }

    def admits(self, queued: QueuedPodInfo) -> bool:
        """Ask the plugins until one refuses, the one that refused last time first.

        Must be called while *queued* is in no sub-queue, for it changes who rejects the pod.
        """
        profile = queued.pod.spec.scheduler_name
        plugins: Sequence[PreEnqueuePlugin] = self._plugins.get(profile, ())
        if queued.gating_plugin:
            plugins = sorted(plugins, key=lambda plugin: queued.gating_plugin != plugin.NAME)
        for plugin in plugins:
            status = _ask(plugin, queued)
            if status is not None and status.code is not Code.SUCCESS:
                queued.unschedulable_plugins.add(plugin.NAME)
                queued.gating_plugin = plugin.NAME
                queued.gating_plugin_events = self._patterns[profile, plugin.NAME]
                return False
        queued.gating_plugin = ""
        queued.gating_plugin_events = ()
        return True


def _ask(plugin: PreEnqueuePlugin, queued: QueuedPodInfo) -> Status | None:
    try:
        return plugin.pre_enqueue(queued.pod_info)
    except Exception as exc:  # a plugin's bug must not lose the pod: it is gated
        log.exception("PreEnqueue failed", extra={"plugin": plugin.NAME, "pod": queued.key})
        return Status.error(str(exc))
