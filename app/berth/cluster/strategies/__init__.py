"""Strategies: defaults, resets and validation of each kind on its way into the store.

What lives here: the rules of Kubernetes' kinds as data, by object type. :mod:`.defaults` says what
missing fields get, ``constraints.json`` what fields may be. :mod:`.constraint_table` reads it and
says where rules are that need code, :mod:`.constraints` evaluates it, and :mod:`.by_schema` makes
the strategy of a kind of both. What a kind does beyond that, such as what an update may change, is
a function in ``core``, ``workloads``, ``job``, ``service``, ``pod``...;
``berth.cluster.kinds.builtin`` says which. What must not: I/O, clocks, other objects of the store
(what needs them is :mod:`berth.cluster.writes.admission`).

Bodies fit the schema of their kind when they come here: that is checked once, when they are read
(:mod:`berth.cluster.http.bodies`).
"""
