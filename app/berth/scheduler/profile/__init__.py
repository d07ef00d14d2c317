"""Runs one profile's plugins at each extension point.

What lives here: the order and weights of a profile's plugins, what their answers mean together
(spec §2.3-2.7), waiting on Permit, the guard through which plugins by others are called. What must
not: the queue, the cache, API calls of its own. Neighbours: ``berth.scheduler.framework`` (the
contract), ``berth.scheduler.config`` (which plugins, with which args), ``berth.scheduler`` (calls
it).
"""
