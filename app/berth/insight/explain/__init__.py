"""Says why: why a pod is pending, why it went where it went, and what would help.

What lives here: the explanation as data (:mod:`~berth.insight.explain.explanation`), the evaluation
of a pod on the table as it is now, with everything that each node is rejected for and not only what
came first, and both as a table for people; and how a decision compares with what was chosen
elsewhere (:mod:`~berth.insight.explain.comparison`). What must not: deciding (``berth.scheduler``),
rules of single plugins (they give their own numbers, :mod:`berth.scheduler.framework.explanation`),
HTTP. Neighbours: ``berth.scheduler`` (below), ``berth.service.server`` and
``berth.insight.offline`` (ask).

The nearest miss is the first in this order: nodes where all that stands in the way could be
changed, then those where a plugin does not say, before those where something could not (their zone,
hardware that they lack); fewer reasons first; then nodes where evicting pods can help before those
where it cannot; then by the hardest change, room before a taint before a label before the pod
itself; then by how much is missing in proportion to what is needed, summed over all objections;
then by name. A node that nobody can change is never called the nearest miss. The nearest nodes are
changed in thought and asked again before anything is advised
(:mod:`berth.insight.explain.verification`): nodes where that does not help are dropped, and those
where it could not be tried come last.

Everything here only reads: neither the scheduler's rotation over nodes nor its random sources
change. Pod groups are tried on the live table, which is as before when the step ends
(:mod:`berth.insight.explain.groups`).
"""
