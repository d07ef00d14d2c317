"""PodTopologySpread: pods spread over zones, nodes and the like (spec §5.12).

What lives here: the plugin, a pod's own constraints and the default ones (``constraints``,
``default_selector``), and how pods are spread over domains (``domains``). Neighbours, both in
``berth.scheduler.framework``: ``pod_counters`` (who runs where), ``label_columns`` (which domain a
node is in).
"""
