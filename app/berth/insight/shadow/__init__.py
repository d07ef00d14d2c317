"""Decides for the pods that another scheduler schedules, writes nothing, and compares.

What lives here: the changes of a cluster taken in one at a time
(:mod:`~berth.insight.shadow.changes`), the pods that wait (:mod:`~berth.insight.shadow.waiting`),
the shadow itself, what it has found, and the report. What must not: writing to the API server,
HTTP, other rules of scheduling than those of ``berth.scheduler``. Neighbours:
``berth.insight.explain`` (below) compares two decisions, ``berth.service`` gives the shadow what
watches tell.

A pod is decided on the state right before its binding, in the order of the watch. The other
scheduler decided earlier, one pod after the other, and counted a pod on its node from its decision
on, while bindings are written beside each other: two that follow each other closely may arrive in
another order than they were decided in. Where the two schedulers differ, the pod is therefore
decided once more, as if pods had been decided in the order of the scheduling queue: by priority,
then by when they came or last failed. Only bindings at most
:data:`~berth.insight.shadow.shadow.WINDOW` apart change places. A comparison says which order it
holds in. Both orders are guesses: no API object says when a pod was decided, for the time of the
condition PodScheduled has whole seconds and is that of the binding.

A pod that has volumes to be bound or devices to be allocated is decided before its claims change:
the other scheduler writes them ahead of the binding, and they then fit its node only.
"""
