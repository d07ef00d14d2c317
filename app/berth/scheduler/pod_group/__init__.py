"""Scheduling pods of a PodGroup together (spec G).

``cycle`` is the scheduling cycle of a group; ``trial`` places its members on the live table and
takes them off again; ``preemption`` finds ``victims`` for the group as one, with the ``room`` that
each would leave; ``reports`` writes its conditions.
"""
