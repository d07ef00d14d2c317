"""What Prometheus is told: kube-scheduler's families (spec §8), and berth's own as ``berth_...``.

Numbers that somebody keeps anyway (queue sizes, cache sizes, write lanes, evaluations of plugins)
are read from their owner when Prometheus asks (``owners``); only moments are recorded here, by
:class:`~berth.metrics.scheduler_metrics.SchedulerMetrics`. Every family is declared once, in
``families`` or ``own_families``; what kube-scheduler exports and berth cannot is in ``absent``.

Nothing here decides anything or imports who is measured: owners are known by protocols, and whoever
measures is given an object of ours. ``berth.main`` connects the two, ``berth.server`` serves the
text that ``exposition`` and ``pod_resources`` make.

Decision (2026-11): observations go to plain dicts and lists, and prometheus-client only words them
for a scrape; because everything runs on one event loop, where a lock protects from nobody: 0.12 µs
an observation instead of 0.82, a dozen times per decision.
"""
