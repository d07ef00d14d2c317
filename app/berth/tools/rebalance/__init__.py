"""Rebalancing: evictions of pods, so that others fit, nodes become empty, or skew goes.

What lives here: the proposal and how it is found (:mod:`.propose`), on a private copy of a cluster
in which evictions are carried out and taken back (:mod:`.trial`); its application to a live cluster
(:mod:`.apply`), again and again until the goal is reached (:mod:`.rebalancing`), with cordons that
are undone (:mod:`.cordons`). What must not: rules of scheduling; where evicted pods go is the
decision of the scheduler of :mod:`berth.scheduler.core`. Neighbours: ``berth.insight.whatif`` (the
snapshot and the simulated cluster), ``berth.cli.rebalance``.
"""
