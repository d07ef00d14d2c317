"""Topology spread: constraints as compiled, and how pods are spread over domains (spec §5.12).

What lives here: a pod's own and default constraints, and counts per domain. What must not: the
answers to the scheduler, which are PodTopologySpread's. Neighbours: ``pod_counters`` (who runs
where), ``label_columns`` (which domain a node is in).
"""
