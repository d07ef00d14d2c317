"""Scheduling pods of a PodGroup together (spec G, 1.37 spec N8-N10).

``entity_cycle`` is the scheduling cycle of a group that is one entity of the queue, as in 1.37,
after ``validation``; ``cycle`` that of 1.36, which a pod of the group begins. ``trial`` and
``feasible_trial`` place its members on the live table and take them off again, ``placement_search``
in each part of the cluster that the group may go to; others may have turns between two of these.
``tree_trial`` does it with all groups below the group. Where that finds nothing, ``look_back`` may.

A group that does not fit may have pods evicted: in 1.37 plugins say which, who ask by way of an
``attempt``; in 1.36 ``preemption`` finds ``victims``, with the ``room`` that each would leave.
``reports`` writes conditions.
"""
