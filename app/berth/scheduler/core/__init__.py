"""One scheduler, without a process around it: built once, driven by whoever owns it.

What lives here: how queue, cache, profiles, attempts, bindings and preemptions are put together
(``scheduler_core``), the configuration that may change while they work (``live_configuration``),
what they need from outside (``outside``), what those see who only look (``view``), an API in memory
(``in_memory_api``), and a cluster on it whose clock does not wait (``simulated_cluster``).

What must not: HTTP, watches and leader election (``berth.service`` adds these), and rules of
scheduling (``berth.scheduler`` below has them). Neighbours above: ``berth.service`` runs a core on
an API server; ``berth.insight.offline``, ``berth.insight.whatif`` and the test harness run one in
memory.
"""
