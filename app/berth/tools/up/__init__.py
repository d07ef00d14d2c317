"""A whole cluster in one process: ``berth up``.

What lives here: the run of ``berth up`` with its progress on a terminal, what is verified at its
end, and scenarios. What must not: the cluster itself (``berth.cluster``).
"""
