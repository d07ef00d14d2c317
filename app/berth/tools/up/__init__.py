"""A whole cluster in one process: ``berth up``.

What lives here: the run of ``berth up`` with its progress on a terminal, and what is verified at
its end. What must not: the cluster itself (``berth.cluster``). Neighbours: ``berth.cli.commands``
above, ``berth.service`` and ``berth.cluster`` below.
"""
