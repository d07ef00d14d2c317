"""One scheduler, without a process around it: built once, driven by whoever owns it.

What lives here: how queue, cache, profiles, attempts, bindings and preemptions are put together,
the configuration that may change while they work, and what they need from outside. What must not:
HTTP, watches and leader election (``berth.assembly`` adds these), and rules of scheduling
(``berth.scheduler`` below has them). Neighbours above: ``berth.assembly`` runs a core on an API
server; ``berth.offline`` and ``berth.whatif`` run one in memory.
"""
