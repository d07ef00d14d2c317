"""Shards: several active schedulers on one cluster, each the only one to bind to its nodes.

What lives here: which slot a node or a pod falls into (``slots``), who should hold which slot
(``assignment``), what a replica holds and may do about slot Leases (``claims``), what that means
for its nodes and pods (``ownership``), what of others' pods it may hear late (``foreign``), and the
parts of a scheduler that go by it (``scheduler``, ``binding``, ``handlers``). What must not: I/O.
Neighbours: ``berth.scheduler.core``, which takes those parts by
:class:`~berth.scheduler.core.scheduler_core.CoreOptions`; ``berth.service.shards``, which reads and
writes the Leases.
"""
