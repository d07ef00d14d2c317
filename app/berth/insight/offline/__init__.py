"""Deciding without a cluster: recorded scenarios in, decisions out.

What lives here: reading API objects from files into a cache of their own, and putting decisions
into the shape that people and tools read. What must not: the network, and rules of scheduling
(``berth.scheduler`` and the plugins have those). Neighbours: ``berth.scheduler.core``
(schedules sequences of pods), ``berth.scheduler.schedule_pod`` (decides on one),
``berth.cli`` (calls this), ``berth.insight.whatif`` (asks what would be).
"""
