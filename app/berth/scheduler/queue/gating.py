"""PreEnqueue: which pods may not be tried yet (spec §3.2)."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.interface import PreEnqueuePlugin
from berth.scheduler.framework.pod_info import QueuedPodGroupInfo, QueuedPodInfo
from berth.scheduler.framework.status import Code, GatedUntilTold, Status
from berth.scheduler.metrics.plugin_observer import NOBODY, PluginObserver
from berth.scheduler.queue.unschedulable import SignatureGroup

log = logging.getLogger(__name__)

PreCheck = Callable[[Pod], bool]
"""Whether an event can concern a waiting pod at all."""


class Gates:
    """Runs the PreEnqueue plugins of a pod's profile and sets the pod's ``gating_plugin``."""

    def __init__(
        self,
        plugins: Mapping[str, Sequence[PreEnqueuePlugin]],
        *,
        observers: Mapping[str, PluginObserver],
    ) -> None:
        """*plugins* and *observers* are by profile; a profile need not have any."""
        self._plugins = plugins
        self._observers = observers
        self._by_name = {
            (profile, plugin.NAME): plugin for profile, of in plugins.items() for plugin in of
        }

    def run_pre_enqueue_plugins(self, queued: QueuedPodInfo) -> bool:
        """Say whether all plugins let the pod in; the one that refused last time is asked first.

        Call this while *queued* is in no sub-queue: it changes the rejectors of the pod. Of a group
        every pod is asked about each time; one that is refused gates all (1.37 spec N8.1).
        """
        if not isinstance(queued, QueuedPodGroupInfo):
            return self._let_in(queued)
        gated = [member for member in queued.pods if not self._let_in(member)]
        queued.gating_plugin = gated[-1].gating_plugin if gated else ""
        queued.unschedulable_plugins = queued.unschedulable_plugins.union(
            member.gating_plugin for member in gated
        )
        return not gated

    def _let_in(self, queued: QueuedPodInfo) -> bool:
        profile = queued.pod.spec.scheduler_name
        plugins: Sequence[PreEnqueuePlugin] = self._plugins.get(profile, ())
        if queued.gating_plugin:
            plugins = sorted(plugins, key=lambda plugin: queued.gating_plugin != plugin.NAME)
        refused_by = _first_to_refuse(plugins, queued, self._observers.get(profile, NOBODY))
        queued.gating_plugin = refused_by
        if refused_by:
            queued.unschedulable_plugins = queued.unschedulable_plugins | {refused_by}
            plugin = self._by_name[profile, refused_by]
            queued.gate_hints_by_signature = plugin.DECIDES_BY_SIGNATURE
        return not refused_by

    def let_in(self, group: SignatureGroup, pre_check: PreCheck | None) -> list[QueuedPodInfo]:
        """Return the gated pods of *group* that their gate refuses no longer.

        Only those for which *pre_check* is true, if it is given. Unlike in kube-scheduler this does
        not count as a run of PreEnqueue: of hundreds of pods that wait for their victims, each may
        be asked about whenever one of the victims goes.
        """
        admitted = []
        for key, queued in [*group.to_ask.items()]:
            if pre_check is not None and not any(pre_check(member.pod) for member in queued.pods):
                continue
            gate = self._by_name[queued.pod.spec.scheduler_name, group.gate]
            statuses = (_ask(gate, pod) for pod in queued.pods)
            refusal = next((s for s in statuses if s and s.code is not Code.SUCCESS), None)
            if refusal is None:
                admitted.append(queued)
            elif isinstance(refusal, GatedUntilTold):
                del group.to_ask[key]
        return admitted


def _first_to_refuse(
    plugins: Iterable[PreEnqueuePlugin], queued: QueuedPodInfo, observer: PluginObserver
) -> str:
    """Return the name of the first plugin that does not let the pod in; empty if all do."""
    is_sampled, started = observer.is_sampled(), observer.now()
    refused_by = ""
    for plugin in plugins:
        asked = observer.now() if is_sampled else 0.0
        status = _ask(plugin, queued)
        if is_sampled:
            label = Code.SUCCESS.label if status is None else status.code.label
            observer.ran_plugin("PreEnqueue", plugin.NAME, label, asked)
        if status is not None and status.code is not Code.SUCCESS:
            refused_by = plugin.NAME
            break
    # Also when the pod was refused, as in kube-scheduler (spec §8).
    observer.ran_point("PreEnqueue", Code.SUCCESS.label, started)
    return refused_by


def _ask(plugin: PreEnqueuePlugin, queued: QueuedPodInfo) -> Status | None:
    try:
        return plugin.pre_enqueue(queued.pod_info)
    except Exception as exc:  # a bug in a plugin must not lose the pod: it is gated
        log.exception("PreEnqueue failed", extra={"plugin": plugin.NAME, "pod": queued.key})
        return Status.error(str(exc))
