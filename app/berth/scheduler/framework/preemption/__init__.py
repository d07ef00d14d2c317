"""Preemption: candidates, for those who propose them and those who carry them out (spec §6).

What lives here: the result of a PostFilter plugin (:mod:`.candidate`), what disruption budgets say
of it (:mod:`.disruption_budgets`), what is evicted together (:mod:`.victim_units`), and the choice
of a node (:mod:`.select_candidate`), which is made again when extenders have left out candidates.
What must not: evictions, which are ``berth.scheduler.preemption``'s, and the search for candidates,
which is a plugin's (``berth_plugins.default_preemption``), or a group's
(``berth.scheduler.pod_group.preemption``).
"""
