"""Strategies: defaults, resets and validation of each kind on its way into the store.

What lives here: one module per kind with its :class:`berth.cluster.resources.Strategy` as a
constant (``POD``, ``NODE``...), and the rules kinds share: ``metadata``, ``selectors``, ``taints``,
``quantities``, ``syntax``. What must not: I/O, clocks, other objects of the store (what needs them
is :mod:`berth.cluster.writes.admission`). Neighbours: ``berth.cluster.kinds.builtin`` lists the
constants.

Bodies fit the schema of their kind when they come here: that is checked once, when they are read
(:mod:`berth.cluster.http.bodies`). Each kind declares its shape, a struct of the fields that its
rules read; ``validate`` evaluates a body through it.
"""
