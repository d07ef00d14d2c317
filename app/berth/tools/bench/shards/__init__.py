"""``berth bench shards``: several active schedulers on one cluster.

``soak`` lets them fail and looks for what is broken; ``cost`` measures the CPU of each, and
``quality`` compares where pods go. ``world`` has the cluster and the replicas.
"""
