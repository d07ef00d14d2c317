"""Says why: why a pod is pending, why it went where it went, and what would help.

What lives here: what there is to tell (:mod:`~app.explain.explanation`), judging a pod on the table
as it is now, with all that stands in the way of every node and not only what came first, and the
same as a table for people. What must not: deciding (``app.scheduler``), rules of single plugins
(they tell their own numbers, :mod:`app.framework.explanation`), HTTP. Neighbours: ``app.scheduler``
(below), ``app.server`` and ``app.offline`` (ask).

Which node missed by least is told by this order: fewer reasons against it first; then nodes where
evicting pods can help before those where it cannot; then by how much is missing in proportion to
what is needed, summed over all objections; then by name.

Everything here reads: the scheduler's rotation over nodes and its dice stay as they are.
"""
