"""A cluster autoscaler in small: adds nodes that let pods run, removes nodes that nobody needs.

What lives here: node groups and their file, the plan of each scan, the machines of a simulated
cloud, and what carries a plan out. What must not: rules of scheduling, which
:mod:`berth.insight.whatif` asks the scheduler about. Neighbours: ``berth.insight.whatif`` (whether
pods would fit), ``berth.cluster.kubelet`` (hollow nodes are the machines), ``berth.tools.up`` (runs
it).

::

    snapshot, pods -->  planner: scale_up, scale_down  --> actions --> autoscaler --> API
    node groups, cloud --^     (synchronous)                             |
                                                                         +--> cloud --> machines

Names, defaults, annotations, taints, events and the status are those of Kubernetes'
cluster-autoscaler. Decision (2026-11): whether nodes help is asked of the what-if engine, which
places pods with the real scheduler's configuration; instead of a packing of its own, which would
disagree with the scheduler sooner or later.
"""
