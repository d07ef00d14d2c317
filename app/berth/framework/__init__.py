"""The contract: all that a plugin may know.

What lives here: the plugin interfaces, the columns that plugins judge (:class:`NodeTable`), the
pods they judge for (:class:`PodInfo`), their answers (:class:`Status`, :class:`Verdict`, scores)
and what they are handed (:class:`CycleState`, :class:`Handle`). What must not: anything that runs
plugins (``berth.profile``), that owns state (``berth.cache``, ``berth.queue``) or does I/O.

Decision (2026-11): a mask covers all slots of a table, dead ones too, because a boolean operation
over 5,000 slots costs 1 µs and indirection would cost more; instead of compacting tables per cycle.
"""
