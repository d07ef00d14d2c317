"""The contract between the scheduler and its plugins; :mod:`berth.plugin` is its public part.

What lives here: the extension points (``interface``), the nodes as columns (``node_table`` and what
it is made of), pods (``pod_info``), what plugins answer (``status``, ``verdict``, ``diagnosis``),
how they explain it (``explanation``, ``change``, ``words``), and what they are given
(``cycle_state``, ``handle``, ``listers``, ``writes``). What must not: anything that runs plugins
(``berth.scheduler.profile``), that owns state (``berth.scheduler.cache``,
``berth.scheduler.queue``), that does I/O, or that only plugins use (``berth_plugins``).

Decision (2026-11): a mask covers all slots of a table, dead ones too, because a boolean operation
over 5,000 slots costs 1 µs and indirection would cost more; instead of compacting tables per cycle.
"""
