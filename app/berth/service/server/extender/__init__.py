"""Endpoints of the extender port: filter, prioritize, preempt and bind for other schedulers.

What lives here: HTTP around ``berth.service.extender_server``, which answers. What must not:
decisions.
"""
