"""Writes of a scheduler: binding, status, claims, volumes; in write lanes.

What must not live here: when to write (``berth.scheduler.api_writer``).
"""
