"""DefaultPreemption: a pod that fits nowhere may have pods of lower priority evicted (spec §6).

What lives here: the plugin (:mod:`.plugin`), who may preempt (:mod:`.eligibility`), and whose
eviction would help on which node (:mod:`.dry_run`; :mod:`.ranked_pods` knows whom to ask about).
What must not: evictions, which are ``berth.scheduler.preemption``'s. Neighbours:
``berth.scheduler.framework.preemption`` has the result, and how the best candidate is chosen.
"""
