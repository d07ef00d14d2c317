"""Preemption as arithmetic: whose eviction would let a pod in, and where it costs least (spec §6).

What lives here: who may preempt (:mod:`.eligibility`), what evictions would help on which node
(:mod:`.dry_run`, with disruption budgets), and which node is chosen (:mod:`.pick_node`). All of it
is about tables and pods that are handed in; nothing is evicted here (``berth.scheduler.preemption``
does that) and no plugin is known. Neighbours: ``berth_plugins.default_preemption`` puts the pieces
together, ``berth.offline`` tells what they found.

Extenders with a preempt verb narrow the candidates down: between :mod:`.dry_run`, whose answer has
all of them, and :mod:`.pick_node`, which takes any of them.
"""
