"""The configuration: KubeSchedulerConfiguration v1 and flags, as kube-scheduler 1.36 reads them.

What lives here: the typed configuration (``types``), strict decoding (``decode``,
``load``), API defaults (``defaults``), validation (``validation``), the merging of plugin lists
(``plugin_sets``), what /configz shows (``configz``), and the flags (``options``, ``flags``).
What must not: anything that acts on the configuration, and any plugin; the models of plugin args
are handed in by name. Neighbours: ``berth.scheduler.framework`` (which plugins implement what),
``berth.service`` (loads the configuration and connects what it describes).

Decision (2026-11): all problems of a file are reported together, with the args of
NodeResourcesFit among them; because one run should be enough to correct a file; instead of
kube-scheduler's two stages, where those args fail only when the plugin is built (spec §1.4).
"""
