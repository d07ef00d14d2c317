"""What is particular about each kind on its way into the store: defaults, resets, validation.

What lives here: one module per kind with its :class:`berth.cluster.resources.Strategy` as a
constant (``POD``, ``NODE``...), and the rules kinds share: ``metadata``, ``selectors``, ``taints``,
``quantities``, ``syntax``. What must not: I/O, clocks, other objects of the store (what needs them
is :mod:`berth.cluster.admission`). Neighbours: ``berth.cluster.kinds.builtin`` lists the constants.

Nothing here raises, whatever JSON it is given. Each kind declares its shape: a struct of the fields
it reads, untouched by defaults. A body that does not fit it is left as it is by ``default`` and
``prepare`` and refused by ``validate``; one that fits is judged through the struct, so the rules
need no type checks of their own.
"""
