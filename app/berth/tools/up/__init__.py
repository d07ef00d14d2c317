"""A whole cluster in one process: ``berth up`` and ``berth cluster``.

What lives here: the embedded cluster as its users see it (``cluster``), the run of ``berth up``
with its progress on a terminal, and what is verified at its end. What must not: the API server and
the kubelets themselves (``berth.cluster``). Neighbours: ``berth.cli.commands`` above,
``berth.service`` and ``berth.cluster`` below.
"""
