"""InterPodAffinity: pods near to, or away from, other pods (spec §5.11).

What lives here: the plugin, and how many pods match per topology domain (``domain_counts``).
Neighbours, both in ``berth.scheduler.framework``: ``affinity_terms`` (terms as compiled),
``pod_counters`` (who runs where, and which terms running pods have).
"""
