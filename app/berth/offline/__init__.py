"""Deciding without a cluster: recorded scenarios in, decisions out.

What lives here: reading API objects from files into a cache of their own, and putting decisions
into the shape that people and tools read. What must not: the network, and rules of scheduling
(``berth.scheduler`` and the plugins have those). Neighbours: ``berth.scheduler.schedule_pod``
(decides), ``berth.commands`` (call this), ``berth.whatif`` (asks other questions of the same
cluster in memory).
"""
