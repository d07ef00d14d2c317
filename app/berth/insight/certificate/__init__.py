"""Certificates: how far what a scheduler does is from the best that its rules allow, with proof.

What lives here: the model of a cluster, made of the masks of the real plugins (:mod:`.model`); the
solver, in a process of its own (:mod:`.solver`, :mod:`.solver_process`): for the fewest nodes by
patterns of a node (:mod:`.patterns`), else, and for few pods, by a number for each group and node
(:mod:`.direct`); what is known without it (:mod:`.counting`); its plan, carried out on a simulated
cluster with the real rules (:mod:`.carrying_out`); and the answer (:mod:`.certificate`). What must
not: an import of OR-Tools outside the solver's process. Neighbours: ``berth.insight.whatif`` (the
cluster that might be), ``berth.cli.simulate`` and ``berth.tools.rebalance``, which ask.

::

    cluster that might be --model--> Problem --solver process--> Solution --carrying_out--> plan
                                                  bound ----------------------------> Certificate

Decision (2026-11): the model leaves rules out, and adds none; because then what it proves
impossible is impossible for the scheduler, too, while a plan that breaks a rule which was left out
is found out by carrying it out. Decision (2026-11): the fewest nodes are bounded by prices for pods
(column generation over patterns of a node); instead of a variable for each pod and node, which
proves nothing beyond the sum of the requests in minutes at 100 nodes. Decision (2026-11): packings
are made of the same patterns by diving, and the nodes with waste are packed again; because the best
whole numbers of the patterns that are known stay some percent above the bound.
"""
